"""Read what the training process and its machine use, and their limits; ``None`` is unknown."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LEAST_TICKS = 100
"""The kernel counts time in hundredths of a second: with fewer, one of them is more than 1 %."""


def live_threads(root: str = "/proc") -> int | None:
    """Return how many threads this process has, native ones included."""
    return _count(f"{root}/self/task")


def open_descriptors(root: str = "/proc") -> int | None:
    """Return how many descriptors this process has open."""
    count = _count(f"{root}/self/fd")
    return None if count is None else count - 1  # counting opens one


def descriptor_limit() -> int | None:
    """Return how many descriptors this process may open; ``None`` also where there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def shared_memory_bytes(path: str = "/dev/shm") -> int | None:
    """Return the size of the file system through which workers send tensors to main."""
    with suppress(OSError):
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize
    return None


def available_bytes(root: str = "/proc", cgroup: str = "/sys/fs/cgroup") -> int | None:
    """Return the RAM still available without swapping, on the machine and in the cgroup."""
    sizes = [_machine_bytes(root), _cgroup_bytes(cgroup)]
    return min((size for size in sizes if size is not None), default=None)


def idle_s(root: str = "/proc") -> float | None:
    """Return the seconds for which cores were idle since the machine started, summed over them."""
    with suppress(OSError, ValueError, IndexError):
        words = _core_words(root)
        return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
    return None


class CoreTime(NamedTuple):
    """The time of all cores since the machine started, in the kernel's ticks."""

    stolen: int
    """Time in which a core of this virtual machine had work, but the host ran another guest."""
    whole: int


def core_time(root: str = "/proc") -> CoreTime | None:
    with suppress(OSError, ValueError, IndexError):
        # user, nice, system, idle, iowait, irq, softirq, steal; user includes guests
        ticks = [int(word) for word in _core_words(root)[1:9]]
        return CoreTime(ticks[7], sum(ticks))
    return None


def stolen_share(before: CoreTime | None, now: CoreTime | None) -> float | None:
    """Return the stolen share of core time in between, 0..1. It is also ``None`` where the time is
    too short, or does not advance, as in a sandbox that invents the file."""
    if before is None or now is None or now.whole - before.whole < _LEAST_TICKS:
        return None
    share = (now.stolen - before.stolen) / (now.whole - before.whole)
    return min(1.0, max(0.0, share))


def _core_words(root: str) -> list[str]:
    """Return the line of /proc/stat on all cores together."""
    return Path(root, "stat").read_text().split("\n", 1)[0].split()


def _machine_bytes(root: str) -> int | None:
    with suppress(OSError, ValueError):
        for line in Path(root, "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def _cgroup_bytes(cgroup: str) -> int | None:
    """Return what the limit of cgroup version 2 leaves; a container has its own group as root."""
    with suppress(OSError, ValueError):
        limit = int(Path(cgroup, "memory.max").read_text())  # "max" is no limit, and no integer
        return max(0, limit - int(Path(cgroup, "memory.current").read_text()))
    return None


def _count(folder: str) -> int | None:
    with suppress(OSError):
        return len(os.listdir(folder))
    return None
