"""What the process that trains has, and what it may have. ``None`` where a system does not tell."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LEAST_TICKS = 100
"""The kernel counts in hundredths of a second: of fewer, one is more than 1 %."""


def live_threads(root: str = "/proc") -> int | None:
    """Of this process, native ones included."""
    return _count(f"{root}/self/task")


def open_descriptors(root: str = "/proc") -> int | None:
    """Of this process; the one that counts them is left out."""
    count = _count(f"{root}/self/fd")
    return None if count is None else count - 1


def descriptor_limit() -> int | None:
    """Above which this process can open no more."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def shared_memory_bytes(path: str = "/dev/shm") -> int | None:
    """Size of the file system in which tensors travel from worker to main."""
    with suppress(OSError):
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize
    return None


def available_bytes(root: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> int | None:
    """RAM that could still be had without swapping: the machine's, or what the cgroup leaves."""
    known = [_machine_bytes(root), _cgroup_bytes(cgroup)]
    return min((size for size in known if size is not None), default=None)


def idle_s(root: str = "/proc") -> float | None:
    """Time for which the machine's cores had nothing to do, summed over them, since it started."""
    with suppress(OSError, ValueError, IndexError):
        words = _core_words(root)
        return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
    return None


class CoreTime(NamedTuple):
    """Of all the machine's cores since it started, in the kernel's ticks."""

    stolen: int
    """A core of this virtual machine had work, and its host ran somebody else."""
    whole: int


def core_time(root: str = "/proc") -> CoreTime | None:
    with suppress(OSError, ValueError, IndexError):
        # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already
        ticks = [int(word) for word in _core_words(root)[1:9]]
        return CoreTime(ticks[7], sum(ticks))
    return None


def stolen_share(before: CoreTime | None, now: CoreTime | None) -> float | None:
    """0..1 of the machine's core time in between. ``None`` too where that is too short to tell, or
    stands still, as where a sandbox makes the file up."""
    if before is None or now is None or now.whole - before.whole < _LEAST_TICKS:
        return None
    share = (now.stolen - before.stolen) / (now.whole - before.whole)
    return min(1.0, max(0.0, share))


def _core_words(root: str) -> list[str]:
    """Of all cores together."""
    return Path(root, "stat").read_text().split("\n", 1)[0].split()


def _machine_bytes(root: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in Path(root, "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _cgroup_bytes(cgroup: str) -> int | None:
    """Of version 2, where a container sees its own group at the root."""
    with suppress(OSError, ValueError):
        most = int(Path(cgroup, "memory.max").read_text())  # "max": no limit
        return max(0, most - int(Path(cgroup, "memory.current").read_text()))
    return None


def _count(folder: str) -> int | None:
    with suppress(OSError):
        return len(os.listdir(folder))
    return None
