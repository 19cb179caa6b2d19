"""What this process holds, thing by thing: what another test lets go is not taken for ours.

before = descriptors()
...
assert not descriptors() - before
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress


def descriptors() -> set[tuple[str, str, int]]:
    """Open descriptors: number, what it leads to, and that file's inode."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # such as the one that listed them
            leads_to = os.readlink(f"/proc/self/fd/{number}")
            found.add((number, leads_to, os.fstat(int(number)).st_ino))
    return found


def threads() -> set[threading.Thread]:
    """Python's own threads that run."""
    return set(threading.enumerate())
