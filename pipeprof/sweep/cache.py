"""Bring the page cache into the state asked for, and verify that state after a trial."""

from __future__ import annotations

import os
from dataclasses import dataclass
from multiprocessing import active_children
from typing import Literal

from pipeprof.measure.environment import read_environment
from pipeprof.measure.proc_counters import Traffic as Traffic
from pipeprof.measure.proc_counters import read_traffic
from pipeprof.model import CacheState, CacheWanted
from pipeprof.storage import open_store
from pipeprof.storage.cache_state import LEAST_READ_BYTES, TRAFFIC_TOLERANCE, hidden_caches
from pipeprof.storage.page_cache import Residency, evict, residency, warm
from pipeprof.storage.urls import is_local
from pipeprof.units import format_bytes, format_share

_State = Literal["cold", "warm", "mixed"]
_COLD_SHARE = 0.01
"""The largest share of pages in memory at which files count as cold."""
_LEAST_BYTES_AFTER_WARMUP = 2**26
"""The bytes read after warm-up above which read-ahead during warm-up is negligible."""


@dataclass(frozen=True)
class PreparedCache:
    """The state of a trial's files after the cache was prepared."""

    wanted: CacheWanted
    paths: tuple[str, ...]
    residency: Residency


def prepare(url: str, wanted: CacheWanted) -> PreparedCache:
    """Evict the files of ``url`` from memory, or read them into it, as far as possible."""
    if not is_local(url):
        return PreparedCache(wanted, (), Residency(None, hidden_caches(url), local=False))
    items = open_store(url).find(url)
    paths = tuple(item.path for item in items)
    memory = read_environment(accelerator="").ram_bytes
    if wanted == "cold":
        evict(paths)
    elif wanted == "warm" and (memory is None or sum(item.size for item in items) < memory):
        warm(paths)  # files larger than the memory would evict each other
    return PreparedCache(wanted, paths, residency(paths))


class ReadMeter:
    """Counts what the loader reads in a trial: in its workers, or without workers in this process.
    It must be created just before the loader starts."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._at_start = Traffic(0, 0) if workers else self._count()
        self._after_warmup: Traffic | None = None
        self._at_end: Traffic | None = None

    def end_warmup(self) -> None:
        """Note the counters at the end of the warm-up."""
        self._after_warmup = self._count()

    def end(self) -> None:
        """Note the counters at the end of the trial, while its workers still live."""
        self._at_end = self._count()

    def traffic(self) -> tuple[Traffic, str] | None:
        """Return the bytes read and moved, and in which period; None where they are unknown. The
        period is that after warm-up, or the whole trial where too little was read after it."""
        measured, trial = (self._after_warmup, "while measuring"), (self._at_start, "in the trial")
        for before, period, least in (
            (*measured, _LEAST_BYTES_AFTER_WARMUP),
            (*trial, LEAST_READ_BYTES),
            (*measured, LEAST_READ_BYTES),
        ):
            if before is not None and self._at_end is not None:
                pairs = zip(self._at_end, before, strict=True)
                read = Traffic(*(now - then for now, then in pairs))
                if read.logical >= least:
                    return read, period
        return None

    def _count(self) -> Traffic | None:
        """Sum the counters of all processes; None unless those of each are known."""
        pids = [child.pid for child in active_children()] if self._workers else [os.getpid()]
        counted = [read_traffic(pid) for pid in pids if pid is not None]
        known = [each for each in counted if each is not None]
        if not known or len(known) < len(counted):
            return None
        return Traffic(*map(sum, zip(*known, strict=True)))


def trial_cache_state(prepared: PreparedCache, meter: ReadMeter) -> CacheState:
    """Return the state of the cache in the trial that has just ended. It follows from the bytes
    that devices moved, or else from the pages in memory."""
    start = prepared.residency
    if not start.local:
        return CacheState("unknown", start.reason)
    if start.share is not None and start.reason:
        return CacheState("warm", start.reason)
    end, counted = residency(prepared.paths).share, meter.traffic()
    if counted is not None:
        read, period = counted
        state = _by_traffic(start.share, read.physical / read.logical)
        logical, physical = format_bytes(read.logical), format_bytes(read.physical)
        source = f"of {logical} read {period}, devices moved {physical}"
    elif start.share is not None:
        state = _by_residency(start.share, end)
        source = "too little was read to tell from where"
    else:
        return CacheState("unknown", start.reason)
    pages = start.reason
    if start.share is not None:
        pages = f"{format_share(start.share)} of the pages were in memory at the start"
        pages += "" if end is None else f", {format_share(end)} at the end"
    stayed = prepared.wanted == "cold" and start.share is not None and start.share > _COLD_SHARE
    remark = "; not all could be evicted" if stayed else ""
    return CacheState(state, f"{pages}; {source}{remark}")


def _by_traffic(start: float | None, moved: float) -> _State:
    """Return the state by the bytes that devices ``moved`` per byte read. A trial whose files were
    partly in memory at the ``start`` is never called cold."""
    if moved <= TRAFFIC_TOLERANCE:
        return "warm"
    began_cold = start is None or start <= _COLD_SHARE
    return "cold" if began_cold and moved >= 1 - TRAFFIC_TOLERANCE else "mixed"


def _by_residency(start: float, end: float | None) -> _State:
    """Return the state by the shares of pages in memory at the start and the end."""
    if start >= 1 - _COLD_SHARE:
        return "warm"
    return "cold" if max(start, 1.0 if end is None else end) <= _COLD_SHARE else "mixed"
