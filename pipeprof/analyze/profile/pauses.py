"""Which times between two batches were pauses and no training steps, and which batches lay ready
when they ended.

Pauses that are known exactly (another loader was iterated, `pipeprof.pause`) are in the rows
already. Another step counts as a pause by its length, and only where a gap separates it from all
ordinary steps: a long tail is no pause. Batches that lay ready when a pause ended are *rested*:
they do not show how fast the loader is.

A run may come in windows. The rule uses the lengths of all steps up to the end of a window, so that
its result hardly depends on where that was cut.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import isnan, log2

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask
from pipeprof.model import BY_LENGTH, BatchLog

LEAST_S = 0.1
"""The shortest pause that is found by its length."""
SHARE = 1 / 30
"""Largest share of the steps that may be pauses."""
TIMES = 30.0
"""The shortest pause, in median steps."""
GAP = 10.0
"""The shortest pause, relative to the longest of the other steps."""
ALONE = 100.0
"""The same for a single pause; the gap of n pauses, to the n-th power, must reach it."""
TAIL = 2.0
"""The n-th power of the gap must also reach the longest of the other steps, in median steps, to
this power: the longer the tail of ordinary steps, the wider the gap behind it must be."""
APART = 20
"""Fewest batches from a pause to the next, except one in ten: slow steps that are close together
are a slow stretch."""
FIRST = 20
"""First steps of a run that are not examined, because a compiler may be at work in them."""
_TOGETHER = 0.1
_BINS = 32
"""Bins for each factor of two, so that each is 2 % wide."""
_SHORTEST_S = 1e-9


class PauseFinder:
    """Finds pauses in one window after another."""

    def __init__(self, ready: int) -> None:
        """``ready``: the most batches that workers fetch ahead."""
        self._ready = ready
        self._lengths: Counter[int] = Counter()
        """Bin of length → number of steps."""
        self._long_before = float("-inf")
        """Index of the last batch with a long step."""
        self._paused_in: tuple[float, float] | None = None
        """Epoch that continues in the next window, and its last batch that a pause followed."""

    def mark(self, columns: Columns) -> Columns:
        """The next batches of the run, with the pauses that were found by length, and the batches
        that rested in pauses of any kind."""
        if not len(columns):
            return columns
        pause_s, kind = columns.pause_s.copy(), columns.pause_kind.copy()
        step_s = columns.done_s - columns.delivered_s
        looked_at = np.isnan(pause_s) & (columns.index >= FIRST) & np.isfinite(step_s)
        self._count(step_s[looked_at])
        ordinary_s, least_s = self._rule()
        long = looked_at & (step_s >= least_s)
        if long.any() and self._apart(columns.index[long]):
            pause_s[long], kind[long] = step_s[long] - ordinary_s, BY_LENGTH
        rested = np.where(self._rested(columns, pause_s > 0), 1.0, np.nan)
        return columns.replaced(pause_s=pause_s, pause_kind=kind, rested=rested)

    def _count(self, step_s: Floats) -> None:
        bins = np.floor(np.log2(np.maximum(step_s, _SHORTEST_S)) * _BINS).astype(int)
        for number, count in zip(*np.unique(bins, return_counts=True), strict=True):
            self._lengths[int(number)] += int(count)

    def _rule(self) -> tuple[float, float]:
        """The median step, and the least length of a pause: infinite where none is found."""
        if len(self._lengths) < 2:
            return 0.0, np.inf
        bins = np.array(sorted(self._lengths))
        counts = np.array([self._lengths[number] for number in bins])
        length = bins / _BINS  # logarithms to the base 2, as all that follows
        total = counts.sum()
        median = length[np.searchsorted(np.cumsum(counts), total / 2)]
        rest, least = length[:-1], length[1:]
        pauses = np.cumsum(counts[::-1])[::-1][1:]  # if the cut is there
        found = (
            (pauses <= SHARE * total)
            & (least >= max(log2(LEAST_S), median + log2(TIMES)))
            & (least - rest >= log2(GAP))
            & (pauses * (least - rest) >= np.maximum(log2(ALONE), TAIL * (rest - median)))
        )
        if not found.any():
            return 0.0, np.inf
        lowest = int(np.argmax(found))
        return float(2**median), float(2 ** ((rest[lowest] + least[lowest]) / 2))

    def _apart(self, index: Floats) -> bool:
        gaps = np.diff(index, prepend=self._long_before, append=np.inf)
        self._long_before = float(index[-1])
        near = (gaps < APART)[:-1] | (gaps < APART)[1:]
        return bool(near.mean() <= _TOGETHER)

    def _rested(self, columns: Columns, paused: Mask) -> Mask:
        """Batches that rested; of few between two pauses, or a pause and the epoch's end, half."""
        rested = np.zeros(len(columns), dtype=bool)
        before, self._paused_in = self._paused_in, None
        epochs = set(columns.epoch[paused]) | ({before[0]} if before else set())
        for epoch in epochs:
            own = columns.epoch == epoch
            nth = columns.nth[own]
            pauses = columns.nth[own & paused]
            if before and before[0] == epoch:
                pauses = np.concatenate([[before[1]], pauses])
            if not (len(nth) and len(pauses)):
                continue
            ends = np.append(pauses[1:], columns.epoch_batches[own][-1])
            last = np.searchsorted(pauses, nth) - 1  # the pause before each batch
            between = ends - pauses - 1
            since = nth - pauses[last]
            rested[own] = (last >= 0) & (since <= np.minimum(self._ready, between // 2)[last])
            if epoch == columns.epoch[-1]:
                self._paused_in = epoch, float(pauses[-1])
        made_ahead: Mask = rested & (columns.worker != -1)
        return made_ahead


def with_pauses(batches: BatchLog, columns: Columns) -> BatchLog:
    """``batches`` with what `PauseFinder.mark` says of them in ``columns``."""
    if not (columns.pause_s > 0).any():
        return batches
    return replace(
        batches,
        pause_s=tuple(None if isnan(value) else value for value in columns.pause_s.tolist()),
        pause_kind=_whole(columns.pause_kind),
        rested=_whole(columns.rested),
    )


def _whole(values: Floats) -> tuple[int | None, ...]:
    if np.isnan(values).all():
        return ()
    return tuple(None if isnan(value) else int(value) for value in values.tolist())
