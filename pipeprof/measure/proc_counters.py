"""What the operating system counts: of a thread, of its process, of its memory.

Read from Linux's /proc. What a system does not tell (macOS, another kernel, a container that hides
it) is NaN, never zero, and nothing here raises.
"""

from __future__ import annotations

import os
import re
import resource
from math import nan
from os import getpid, pread
from resource import getrusage
from time import process_time
from typing import NamedTuple

from pipeprof.measure.host import live_threads, open_descriptors

_ABSENT = -1
"""In place of a descriptor; no read from it succeeds."""
_THIS_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)
_PRIVATE = re.compile(rb"^Private_(?:Clean|Dirty): +(\d+) kB$", re.MULTILINE)


class Resources(NamedTuple):
    """What a stretch of time took. NaN: not known."""

    runqueue_s: float
    """The thread could have run, and had no core. Each waking from a sleep adds some 10 µs."""
    process_cpu_s: float
    """CPU time of all threads of the process, native ones included."""
    system_s: float
    """CPU time of the thread in the kernel. Most kernels sample it, 100 to 1000 times a second, and
    share out the time by all samples so far: fair over a run, coarse for one short stretch."""
    logical_bytes: float
    """Returned by the process's read calls, cached or not, from files, pipes and terminals. Not
    those that came by ``mmap`` or by ``recv``."""
    physical_bytes: float
    """Fetched by block devices and NFS for the process, ``mmap`` and read-ahead included. FUSE and
    other network filesystems fetch without saying so: nothing here is no proof of a cache."""
    syscalls: float
    """The process's read calls."""


UNKNOWN = Resources(nan, nan, nan, nan, nan, nan)


class ThreadProbe:
    """Counters of the calling thread and its process, over a stretch of time.

    For one thread: the one that makes it, so open it in the worker. A process forked since may go
    on with it: `begin` then turns to the counters of that process. Holds two descriptors.
    """

    __slots__ = ("_before", "_io", "_pid", "_root", "_schedstat")

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._open()

    def _open(self) -> None:
        self._pid = getpid()
        self._schedstat = _opened(f"{self._root}/thread-self/schedstat")
        self._io = _opened(f"{self._root}/self/io")
        self._before = (nan, nan, b"", b"")

    def begin(self) -> None:
        """Start a stretch."""
        if getpid() != self._pid:
            self.close()
            self._open()
        self._before = self._counters()

    def end(self) -> Resources:
        """What was used since `begin`, or since the last `end`: each starts the next stretch."""
        if getpid() != self._pid:  # forked in between
            return UNKNOWN
        cpu_s, system_s, schedstat, io = self._before
        cpu_now_s, system_now_s, schedstat_now, io_now = self._before = self._counters()
        read, calls, fetched = _transfers(io)
        read_now, calls_now, fetched_now = _transfers(io_now)
        return Resources(
            _waited_s(schedstat_now) - _waited_s(schedstat),
            cpu_now_s - cpu_s,
            system_now_s - system_s,
            # Less the probe's own: a read shows in the counters from the next read on.
            read_now - read - len(io) - len(schedstat_now),
            fetched_now - fetched,
            calls_now - calls - 1 - (schedstat_now != b""),
        )

    def close(self) -> None:
        """Give back the descriptors; what they told is unknown from now on."""
        for descriptor in (self._schedstat, self._io):
            if descriptor != _ABSENT:
                os.close(descriptor)
        self._schedstat = self._io = _ABSENT

    def _counters(self) -> tuple[float, float, bytes, bytes]:
        return process_time(), _system_s(), _read(self._schedstat), _read(self._io)


def threads_waited_s(root: str = "/proc") -> float:
    """How long the threads of this process, all that live, have wanted a core and had none. NaN:
    not known. Takes some 20 µs a thread. It is asked while reads are watched: not by ``open``."""
    try:
        threads = os.listdir(f"{root}/self/task")
    except OSError:
        return nan
    known = []
    for each in threads:
        descriptor = _opened(f"{root}/self/task/{each}/schedstat")
        waited_s = _waited_s(_read(descriptor))
        if waited_s == waited_s:  # else it has just ended
            known.append(waited_s)
        if descriptor != _ABSENT:
            os.close(descriptor)
    return sum(known) if known else nan


class Gauges(NamedTuple):
    """How things stand in this process. NaN: not known."""

    private_bytes: float
    """Memory that it shares with no other process: what a forked worker has made its own."""
    descriptors: float
    """Open files, sockets, pipes."""
    threads: float
    """Native ones included."""


def read_gauges(root: str = "/proc") -> Gauges:
    """Look around. Dear, as the kernel walks through all memory of the process: 0.2 ms in a small
    one, 3 ms with torch, and 10 ms more for each GB in use. Wait some hundred times as long."""
    private = _PRIVATE.findall(_contents(f"{root}/self/smaps_rollup"))
    return Gauges(
        private_bytes=sum(map(float, private)) * 1024 if private else nan,
        descriptors=_known(open_descriptors(root)),
        threads=_known(live_threads(root)),
    )


class Traffic(NamedTuple):
    """Bytes that processes read since they began."""

    logical: int
    """By read calls, cached or not."""
    physical: int
    """Moved by devices."""


def read_traffic(pid: int, root: str = "/proc") -> Traffic | None:
    """Of a process; ``None``: it is gone, or is not ours, or its kernel does not count."""
    logical, _, physical = _transfers(_contents(f"{root}/{pid}/io"))
    return None if logical != logical else Traffic(int(logical), int(physical))


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return _ABSENT


def _read(descriptor: int) -> bytes:
    try:
        return pread(descriptor, 256, 0)
    except OSError:
        return b""


def _system_s() -> float:
    return nan if _THIS_THREAD is None else getrusage(_THIS_THREAD).ru_stime


def _waited_s(schedstat: bytes) -> float:
    """Of: time run, time waited (ns), turns on a core."""
    try:
        _, waited, turns = schedstat.split()
        # Whoever reads this has had a turn: none is said by a kernel that does not count.
        return nan if turns == b"0" else int(waited) * 1e-9
    except ValueError:
        return nan


def _transfers(io: bytes) -> tuple[float, float, float]:
    """``rchar``, ``syscr`` and ``read_bytes``: the first, third and fifth line."""
    try:
        _, rchar, _, _, _, syscr, _, _, _, read_bytes, _ = io.split(None, 10)
        return int(rchar), int(syscr), int(read_bytes)
    except ValueError:
        return nan, nan, nan


def _contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _known(count: int | None) -> float:
    return nan if count is None else count
