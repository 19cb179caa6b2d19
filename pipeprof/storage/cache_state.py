"""Infer from the workers' I/O counters whether a run's data came from storage or from memory."""

from __future__ import annotations

from collections.abc import Sequence

from pipeprof.model import BatchLog, CacheState, DataSource
from pipeprof.storage.page_cache import by_file_system, uncounted_kinds
from pipeprof.storage.urls import is_local, local_path
from pipeprof.units import format_bytes

LEAST_READ_BYTES = 1_000_000
"""The bytes read below which no state is inferred; traffic through pipes is far less."""
TRAFFIC_TOLERANCE = 0.1
"""The relative error of the bytes that devices moved, from read-ahead and other files."""


def infer_cache_state(log: BatchLog, source: DataSource | None, root: str = "/proc") -> CacheState:
    """Compare the bytes that devices moved with those read, over the sampled batches.

    ``source`` is what the data set reads; None where it does not say. Any file system mounted here
    may then hold the files, and "warm" and "mixed" need that the kernel counts for all of them.
    """
    known = _known_by_location(source, root)
    if known is not None:
        return known
    rows = [row for row, moved in enumerate(log.physical_bytes) if moved is not None]
    if not rows:
        return CacheState("unknown", "the kernel does not report what the reading processes read")
    logical, physical = _sum(log.logical_bytes, rows), _sum(log.physical_bytes, rows)
    recorded = _sum(log.bytes, rows)
    asked, moved = format_bytes(logical), format_bytes(physical)
    traffic = f"of {asked} read in {len(rows):,} sampled batches, devices moved {moved}"
    if max(logical, physical, recorded) < LEAST_READ_BYTES:
        return CacheState("unknown", f"too little to tell from where: {traffic}")
    if logical < TRAFFIC_TOLERANCE * physical:
        why = "through memory maps, whose reads from memory are not counted"
        return CacheState("unknown", f"{traffic}: files are read {why}")
    if logical < recorded / 2:
        why = "and it is not known where the service had them from"
        return CacheState(
            "unknown", f"most of {format_bytes(recorded)} came through sockets, {why}"
        )
    if physical >= (1 - TRAFFIC_TOLERANCE) * logical:
        return CacheState("cold", traffic)
    foreign = () if source is not None else uncounted_kinds(root)
    if foreign:
        why = f"as when files are in memory, or on {', '.join(foreign)}, which may not be counted"
        return CacheState("unknown", f"{traffic}, {why}")
    return CacheState("warm" if physical <= TRAFFIC_TOLERANCE * logical else "mixed", traffic)


def hidden_caches(url: str) -> str:
    """Return why the caches of a remote ``url`` are unknown."""
    return f"caches behind {url.partition('://')[0]}:// cannot be observed"


def _known_by_location(source: DataSource | None, root: str) -> CacheState | None:
    """Return the state that follows from where the data lies; None where counters are needed."""
    if source is None:
        return None
    if not is_local(source.url):
        return CacheState("unknown", hidden_caches(source.url))
    known = by_file_system([local_path(source.url)], root)
    if known is None:
        return None
    return CacheState("unknown" if known.share is None else "warm", known.reason)


def _sum(column: Sequence[float | None], rows: Sequence[int]) -> float:
    return sum(column[row] or 0.0 for row in rows) if column else 0.0
