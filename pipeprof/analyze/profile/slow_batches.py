"""Find batches that take many times as long as the median one, of one worker or of all at once.

A slow batch of one worker blocks the batches behind it, which the other workers have fetched
meanwhile. Where the storage pauses for all workers at once, nothing is fetched meanwhile, and no
order of delivery helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask

SLOW = 5.0
"""Multiple of the median fetch time from which a batch is slow."""


@dataclass(frozen=True)
class SlowBatches:
    """Slow batches among consecutive ones."""

    mask: Mask
    """Which batches are slow. [batches]"""
    concurrent_s: float
    """Seconds that other workers spent on batches while one worker was on a slow one."""
    concurrent_slow_s: float
    """The part of ``concurrent_s`` that was spent on slow batches too."""


def slow_batches(columns: Columns) -> SlowBatches:
    """Find the slow batches. One whose fetch time is unknown is not slow."""
    known = np.isfinite(columns.made_s)
    if not known.any():
        return SlowBatches(known, 0.0, 0.0)
    mask = known & (columns.made_s > SLOW * np.median(columns.made_s[known]))
    concurrent_s = concurrent_slow_s = 0.0
    start, end, workers = columns.fetch_start_s, columns.fetch_end_s, columns.worker
    for own in np.unique(workers[mask]):
        fetches = start[mask & (workers == own)], end[mask & (workers == own)]
        for other in np.unique(workers[known & (workers != own)]):
            theirs = known & (workers == other)
            concurrent_s += _overlap_s(fetches, (start[theirs], end[theirs]))
            theirs = theirs & mask
            concurrent_slow_s += _overlap_s(fetches, (start[theirs], end[theirs]))
    return SlowBatches(mask, concurrent_s, concurrent_slow_s)


def _overlap_s(spans: tuple[Floats, Floats], others: tuple[Floats, Floats]) -> float:
    """Return the seconds in which a span of both lasts. Spans of one worker do not overlap."""
    if not len(others[0]):
        return 0.0
    order = np.argsort(others[0], kind="stable")
    start, end = others[0][order], others[1][order]
    moments = np.column_stack([start, end]).ravel()
    passed = np.column_stack([np.zeros(len(start)), end - start]).ravel().cumsum()
    within = np.interp(spans[1], moments, passed) - np.interp(spans[0], moments, passed)
    return float(within.sum())
