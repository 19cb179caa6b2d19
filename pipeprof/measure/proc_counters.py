"""Read the operating system's counters of a thread, its process and its memory.

They come from Linux's /proc. What a system does not count or show (macOS, some kernels and
containers) is NaN, never zero, and nothing here raises.
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
"""The value of a descriptor that is not open: every read from it fails."""
_THIS_THREAD: int | None = getattr(resource, "RUSAGE_THREAD", None)
_PAGE_BYTES = resource.getpagesize()
_PRIVATE = re.compile(rb"^Private_(?:Clean|Dirty): +(\d+) kB$", re.MULTILINE)


class Resources(NamedTuple):
    """The resources that a thread and its process used in a span of time; NaN is unknown."""

    runqueue_s: float
    """Seconds in which the thread could run, but had no core. Each wake-up adds about 10 µs."""
    process_cpu_s: float
    """CPU seconds of all threads of the process, native ones included."""
    system_s: float
    """CPU seconds of the thread in the kernel. Most kernels sample them 100 to 1000 times a second:
    they are right over a run, and coarse for a short span."""
    logical_bytes: float
    """Bytes that the process's read calls returned, cached or not, from files, pipes and terminals.
    Those read by ``mmap`` or ``recv`` are not counted."""
    physical_bytes: float
    """Bytes that block devices and NFS fetched for the process, by ``mmap`` and read-ahead too.
    FUSE and other network file systems are not counted: 0 is no proof of a cache."""
    syscalls: float
    """Read calls of the process."""


UNKNOWN = Resources(nan, nan, nan, nan, nan, nan)


class ThreadProbe:
    """Measures the resources of the thread that creates it, and of its process, by two descriptors.
    In a forked child, `begin` opens the counters of that process."""

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
        """Begin a span of time."""
        if getpid() != self._pid:
            self.close()
            self._open()
        schedstat, io = self._read()
        # clocks last, and first at the end, so that they leave out these two reads
        self._before = process_time(), _system_s(), schedstat, io

    def end(self, others_s: float = 0.0) -> Resources:
        """Return what was used since `begin` or the last `end`, and begin the next span.
        ``others_s`` are CPU seconds of this thread that were used for something else."""
        if getpid() != self._pid:  # forked in between
            return UNKNOWN
        cpu_s, system_s, schedstat, io = self._before
        cpu_now_s, system_now_s = process_time(), _system_s()
        schedstat_now, io_now = self._read()
        self._before = cpu_now_s, system_now_s, schedstat_now, io_now
        read, calls, fetched = _transfers(io)
        read_now, calls_now, fetched_now = _transfers(io_now)
        return Resources(
            _waited_s(schedstat_now) - _waited_s(schedstat),
            cpu_now_s - cpu_s - others_s,
            system_now_s - system_s,
            # without the probe's own reads, which each appear in the counters of the next one
            read_now - read - len(io) - len(schedstat_now),
            fetched_now - fetched,
            calls_now - calls - 1 - (schedstat_now != b""),
        )

    def close(self) -> None:
        """Close the descriptors; their counters are unknown from now on."""
        for descriptor in (self._schedstat, self._io):
            if descriptor != _ABSENT:
                os.close(descriptor)
        self._schedstat = self._io = _ABSENT

    def _read(self) -> tuple[bytes, bytes]:
        return _read(self._schedstat), _read(self._io)


def threads_waited_s(root: str = "/proc") -> float:
    """Return how long this process's live threads have waited for a core; NaN is unknown. It takes
    about 20 µs a thread. It avoids ``open``, which is patched while reads are recorded."""
    try:
        threads = os.listdir(f"{root}/self/task")
    except OSError:
        return nan
    waits_s = [thread_waited_s(int(each), root) for each in threads]
    known = [each for each in waits_s if each == each]  # others have just ended
    return sum(known) if known else nan


def thread_waited_s(thread: int, root: str = "/proc") -> float:
    """Return how long a thread of this process has waited for a core; NaN is unknown. ``thread`` is
    its number in the kernel."""
    descriptor = _opened(f"{root}/self/task/{thread}/schedstat")
    try:
        return _waited_s(_read(descriptor))
    finally:
        if descriptor != _ABSENT:
            os.close(descriptor)


class Gauges(NamedTuple):
    """What this process has at a moment; NaN is unknown."""

    private_bytes: float
    """Memory that it shares with no other process, such as pages that a forked worker wrote to."""
    descriptors: float
    """Open files, sockets and pipes."""
    threads: float
    """Its threads, native ones included."""


def read_gauges(root: str = "/proc") -> Gauges:
    """Read the gauges of this process, which is expensive.

    The kernel walks through all memory of the process. That takes 0.2 ms in a small one, 3 ms with
    torch, and 10 ms more for each GB in use. Wait about a hundred times as long in between.
    """
    private = _PRIVATE.findall(_contents(f"{root}/self/smaps_rollup"))
    return Gauges(
        private_bytes=sum(map(float, private)) * 1024 if private else nan,
        descriptors=_nan_if_none(open_descriptors(root)),
        threads=_nan_if_none(live_threads(root)),
    )


class Traffic(NamedTuple):
    """Bytes that processes have read since they started."""

    logical: int
    """Bytes returned by read calls, cached or not."""
    physical: int
    """Bytes fetched by devices."""


def read_traffic(pid: int, root: str = "/proc") -> Traffic | None:
    """Return the traffic of a process, or ``None``. It is ``None`` for a process that has ended or
    is another user's, or without such counters."""
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


def new_bytes() -> float:
    """Return how much memory this thread was the first to use, so that the kernel provided it."""
    return nan if _THIS_THREAD is None else getrusage(_THIS_THREAD).ru_minflt * _PAGE_BYTES


def _system_s() -> float:
    return nan if _THIS_THREAD is None else getrusage(_THIS_THREAD).ru_stime


def _waited_s(schedstat: bytes) -> float:
    """Return the second field, in seconds. The fields: ns running, ns waiting, times scheduled."""
    try:
        _, waited, scheduled = schedstat.split()
        # the reader itself has been scheduled: 0 means that the kernel does not count
        return nan if scheduled == b"0" else int(waited) * 1e-9
    except ValueError:
        return nan


def _transfers(io: bytes) -> tuple[float, float, float]:
    """Return ``rchar``, ``syscr`` and ``read_bytes``: the first, third and fifth line."""
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


def _nan_if_none(count: int | None) -> float:
    return nan if count is None else count
