"""Whether a run's data came from storage or from memory, told by what the workers' counters saw."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.model import BatchLog, CacheState, DataSource
from pipeprof.storage.page_cache import by_file_system, uncounted_kinds
from pipeprof.storage.urls import is_local, local_path
from pipeprof.units import format_bytes

ENOUGH_BYTES = 1_000_000
"""Read: what passes through pipes is far less."""
NEARLY = 0.1
"""Read-ahead and other files blur what was moved by so much."""


def tell_cache(log: BatchLog, source: DataSource | None, root: str = "/proc") -> CacheState:
    """Of the batches that were sampled: what devices moved, of what was read.

    ``source``: what is read, where the data set says so. Otherwise any file system that is mounted
    here may hold the files, and only what they all count is believed.
    """
    behind = _unseen(source, root)
    if behind is not None:
        return behind
    rows = [row for row, moved in enumerate(log.physical_bytes) if moved is not None]
    if not rows:
        return CacheState("unknown", "the kernel does not tell what the reading processes read")
    logical, physical = _sum(log.logical_bytes, rows), _sum(log.physical_bytes, rows)
    seen = _sum(log.bytes, rows)
    asked, moved = format_bytes(logical), format_bytes(physical)
    of = f"of {asked} read in {len(rows):,} sampled batches, devices moved {moved}"
    if max(logical, physical, seen) < ENOUGH_BYTES:
        return CacheState("unknown", f"too little to tell from where: {of}")
    if logical < NEARLY * physical:
        why = "by memory maps, of which nobody counts what was in memory"
        return CacheState("unknown", f"{of}: files are read {why}")
    if logical < seen / 2:
        why = "which do not say where a service had them from"
        return CacheState("unknown", f"most of {format_bytes(seen)} came by sockets, {why}")
    if physical >= (1 - NEARLY) * logical:
        return CacheState("cold", of)
    foreign = () if source is not None else uncounted_kinds(root)
    if foreign:
        why = f"as when files are in memory, or on {', '.join(foreign)}, which may not be counted"
        return CacheState("unknown", f"{of}, {why}")
    return CacheState("warm" if physical <= NEARLY * logical else "mixed", of)


def _unseen(source: DataSource | None, root: str) -> CacheState | None:
    """What is known without counting."""
    if source is None:
        return None
    if not is_local(source.url):
        scheme = source.url.partition("://")[0]
        return CacheState("unknown", f"caches behind {scheme}:// cannot be seen")
    where = by_file_system([local_path(source.url)], root)
    if where is None:
        return None
    return CacheState("unknown" if where.share is None else "warm", where.reason)


def _sum(column: Sequence[float | None], rows: Sequence[int]) -> float:
    return sum(column[row] or 0.0 for row in rows) if column else 0.0
