"""What the process that trains has, and what it may have. ``None`` where a system does not tell."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path


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
        words = Path(root, "stat").read_text().split("\n", 1)[0].split()
        return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
    return None


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
