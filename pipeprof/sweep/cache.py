"""The page cache in a trial: brought into the state asked for, and what was had of it, proven."""

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
from pipeprof.storage.page_cache import Residency, evict, residency, warm
from pipeprof.storage.urls import is_local
from pipeprof.units import format_bytes, format_share

_State = Literal["cold", "warm", "mixed"]
COLD = 0.01
"""Of the pages may be in memory when a trial begins that is called cold."""
_NEARLY = 0.1
"""Read-ahead and other files blur what was moved by so much."""
_ENOUGH_BYTES = 1_000_000
"""Read: what passes through pipes is far less."""
_SETTLED_BYTES = 2**26
"""Read after warm-up: what a device had moved before, and was read only then, is far less."""


@dataclass(frozen=True)
class Begun:
    """How a trial found its files, once the cache was prepared."""

    wanted: CacheWanted
    paths: tuple[str, ...]
    residency: Residency


def prepare(url: str, wanted: CacheWanted) -> Begun:
    """Evict the files of ``url``, or read them, as far as they can be."""
    if not is_local(url):
        scheme = url.partition("://")[0]
        reason = f"caches behind {scheme}:// cannot be seen"
        return Begun(wanted, (), Residency(None, reason, local=False))
    items = open_store(url).find(url)
    paths = tuple(item.path for item in items)
    memory = read_environment(accelerator="").ram_bytes
    if wanted == "cold":
        evict(paths)
    elif wanted == "warm" and (memory is None or sum(item.size for item in items) < memory):
        warm(paths)  # more than there is memory would push itself out
    return Begun(wanted, paths, residency(paths))


class ReadMeter:
    """What the loader reads in a trial: its workers, or without workers this process."""

    def __init__(self, workers: int) -> None:
        """Just before the loader starts."""
        self._workers = workers
        self._began = Traffic(0, 0) if workers else self._count()
        self._measuring: Traffic | None = None
        self._ended: Traffic | None = None

    def measuring(self) -> None:
        """Warm-up is over."""
        self._measuring = self._count()

    def end(self) -> None:
        """While the workers still live."""
        self._ended = self._count()

    def traffic(self) -> tuple[Traffic, str] | None:
        """Read after warm-up, or if that is too little to tell anything, in the whole trial."""
        after, whole = (self._measuring, "while measuring"), (self._began, "in the trial")
        tried = (*after, _SETTLED_BYTES), (*whole, _ENOUGH_BYTES), (*after, _ENOUGH_BYTES)
        for before, when, least in tried:
            if before is not None and self._ended is not None:
                read = Traffic(*(now - then for now, then in zip(self._ended, before, strict=True)))
                if read.logical >= least:
                    return read, when
        return None

    def _count(self) -> Traffic | None:
        """``None`` where it is not known of each process."""
        pids = [child.pid for child in active_children()] if self._workers else [os.getpid()]
        counted = [read_traffic(pid) for pid in pids if pid is not None]
        known = [each for each in counted if each is not None]
        if not known or len(known) < len(counted):
            return None
        return Traffic(*map(sum, zip(*known, strict=True)))


def label(begun: Begun, meter: ReadMeter) -> CacheState:
    """Of a trial that has just ended: by what devices moved, else by what lay in memory."""
    start = begun.residency
    if not start.local:
        return CacheState("unknown", start.reason)
    if start.share is not None and start.reason:
        return CacheState("warm", start.reason)
    end, told = residency(begun.paths).share, meter.traffic()
    if told is not None:
        read, when = told
        state = _by_traffic(start.share, read.physical / read.logical)
        logical, physical = format_bytes(read.logical), format_bytes(read.physical)
        source = f"of {logical} read {when}, devices moved {physical}"
    elif start.share is not None:
        state = _by_residency(start.share, end)
        source = "too little was read to tell from where"
    else:
        return CacheState("unknown", start.reason)
    found = start.reason
    if start.share is not None:
        found = f"{format_share(start.share)} of the pages were in memory at the start"
        found += "" if end is None else f", {format_share(end)} at the end"
    stayed = begun.wanted == "cold" and start.share is not None and start.share > COLD
    left = "; not all could be evicted" if stayed else ""
    return CacheState(state, f"{found}; {source}{left}")


def _by_traffic(start: float | None, moved: float) -> _State:
    """``moved``: physical bytes of a logical one. What did not begin cold is not called cold."""
    if moved <= _NEARLY:
        return "warm"
    began_cold = start is None or start <= COLD
    return "cold" if began_cold and moved >= 1 - _NEARLY else "mixed"


def _by_residency(start: float, end: float | None) -> _State:
    if start >= 1 - COLD:
        return "warm"
    return "cold" if start <= COLD and end is not None and end <= COLD else "mixed"
