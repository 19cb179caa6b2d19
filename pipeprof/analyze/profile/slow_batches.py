"""Batches that take many times as long as the median one, of one worker or of all at once.

A slow batch of one worker holds up the batches behind it, which the other workers have built
meanwhile. Where storage pauses for all workers at once, nothing is built meanwhile, and no order of
delivery helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask

SLOW = 5.0
"""A batch that takes so many times the median is slow."""


@dataclass(frozen=True)
class SlowBatches:
    """Of consecutive batches."""

    mask: Mask
    beside_s: float
    """Seconds that other workers spent on batches while one worker was on a slow one."""
    beside_slow_s: float
    """Of them, those that were spent on slow batches too."""


def slow_batches(columns: Columns) -> SlowBatches:
    """Find them. A batch whose time is unknown is not slow."""
    known = np.isfinite(columns.made_s)
    if not known.any():
        return SlowBatches(known, 0.0, 0.0)
    mask = known & (columns.made_s > SLOW * np.median(columns.made_s[known]))
    beside_s = beside_slow_s = 0.0
    start, end, workers = columns.fetch_start_s, columns.fetch_end_s, columns.worker
    for own in np.unique(workers[mask]):
        spans = start[mask & (workers == own)], end[mask & (workers == own)]
        for other in np.unique(workers[known & (workers != own)]):
            theirs = known & (workers == other)
            beside_s += _overlap_s(spans, (start[theirs], end[theirs]))
            theirs = theirs & mask
            beside_slow_s += _overlap_s(spans, (start[theirs], end[theirs]))
    return SlowBatches(mask, beside_s, beside_slow_s)


def _overlap_s(spans: tuple[Floats, Floats], others: tuple[Floats, Floats]) -> float:
    """Seconds for which a span of each lasts; spans of one worker do not overlap each other."""
    if not len(others[0]):
        return 0.0
    order = np.argsort(others[0], kind="stable")
    start, end = others[0][order], others[1][order]
    moments = np.column_stack([start, end]).ravel()
    passed = np.column_stack([np.zeros(len(start)), end - start]).ravel().cumsum()
    within = np.interp(spans[1], moments, passed) - np.interp(spans[0], moments, passed)
    return float(within.sum())
