"""Find pauses among the training steps, and the batches that lay ready when a pause ended.

Pauses that are known exactly (another loader was iterated, `pipeprof.pause`) are in the rows
already. Other steps count as pauses if they are long, and only where a gap separates them from all
ordinary steps: a long tail is no pause. The step on the last batch of a pass is compared with all
others: a loop that keeps the iterator ends that step only when it drops it. Batches that lay ready
when a pause ended are *rested*, and do not show how fast the loader is.

A run may come in windows. The rule uses the lengths of all steps up to the end of a window, so that
its result hardly depends on where the windows end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import isnan, log2

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask
from pipeprof.model import BY_LENGTH, BatchLog

LEAST_S = 0.1
"""Shortest pause that is found by its length, in seconds."""
MOST_SHARE = 1 / 30
"""Largest share of the steps that may be pauses."""
LEAST_MEDIANS = 30.0
"""Shortest pause, in median steps."""
LEAST_GAP = 10.0
"""Shortest pause, relative to the longest of the other steps."""
LEAST_LONE_GAP = 100.0
"""The same for a single pause. The gap of n pauses, to the n-th power, must reach it."""
TAIL_EXPONENT = 2.0
"""Power of the longest ordinary step, in median steps, that the n-th power of the gap must reach
too. The longer the tail of ordinary steps, the wider the gap behind it must be."""
LEAST_DISTANCE = 20
"""Fewest batches between pauses. Slow steps that are closer together are a slow stretch."""
_MOST_CLOSE = 0.1
"""Largest share of pauses that may be closer together."""
COMPILING = 20
"""First steps of a run that are not examined, because a compiler may be at work in them."""
_BINS = 32
"""Bins for each factor of two, so that each is 2 % wide."""
_SHORTEST_S = 1e-9


class PauseFinder:
    """Finds the pauses of a run in one window after another."""

    def __init__(self, prefetched: int) -> None:
        """``prefetched`` is the most batches that workers fetch ahead."""
        self._prefetched = prefetched
        self._lengths: Counter[int] = Counter()
        """Bin of length → number of steps."""
        self._longest_s = 0.0
        """The longest ordinary step that is not the last of a pass."""
        self._last_long = float("-inf")
        """Index of the last batch with a long step."""
        self._last_pause: tuple[float, float] | None = None
        """Epoch that continues in the next window, and its last batch that a pause followed."""

    def mark(self, columns: Columns) -> Columns:
        """Return the next batches of the run with the pauses that were found by length, and with
        the batches marked that rested in pauses of any kind."""
        if not len(columns):
            return columns
        pause_s, kind = columns.pause_s.copy(), columns.pause_kind.copy()
        host_s = columns.done_s - columns.delivered_s - columns.others_s
        # a loop that runs ahead of its accelerator waits for it now and then, which is no pause
        on_device = np.isfinite(columns.device_busy_s)
        step_s = np.where(on_device, columns.device_busy_s, host_s)
        last = columns.nth == columns.epoch_batches - 1
        examined = np.isnan(pause_s) & (columns.index >= COMPILING) & np.isfinite(step_s)
        self._count(step_s[examined])
        ordinary_s, least_s = self._rule()
        long = examined & (step_s >= least_s)
        if long.any() and self._far_apart(columns.index[long]):
            pause_s[long], kind[long] = step_s[long] - ordinary_s, BY_LENGTH
            examined &= ~long
        self._longest_s = float(np.max(step_s[examined & ~last], initial=self._longest_s))
        known_s = np.nan_to_num(pause_s)
        least_s = max(LEAST_S, LEAST_MEDIANS * ordinary_s, LEAST_GAP * self._longest_s)
        left = last & (self._longest_s > 0) & (step_s - known_s >= least_s)
        kind[left & (step_s - known_s > known_s)] = BY_LENGTH
        pause_s[left] = step_s[left] - ordinary_s
        pause_s = np.minimum(pause_s, host_s)  # the rest passed while the loop waited for a batch
        rested = np.where(self._rested(columns, pause_s > 0), 1.0, np.nan)
        return columns.replaced(pause_s=pause_s, pause_kind=kind, rested=rested)

    def _count(self, step_s: Floats) -> None:
        """Count the steps by length."""
        bins = np.floor(np.log2(np.maximum(step_s, _SHORTEST_S)) * _BINS).astype(int)
        first = int(bins.min(initial=0))
        counts = np.bincount(bins - first)
        for place in np.flatnonzero(counts).tolist():
            self._lengths[first + place] += int(counts[place])

    def _rule(self) -> tuple[float, float]:
        """Return the median step and the shortest pause, in seconds. The latter is infinite where
        there is no pause."""
        if not self._lengths:
            return 0.0, np.inf
        bins = np.array(sorted(self._lengths))
        counts = np.array([self._lengths[number] for number in bins])
        length = bins / _BINS  # this and what follows are logarithms to the base 2
        total = counts.sum()
        median = length[np.searchsorted(np.cumsum(counts), total / 2)]
        step, pause = length[:-1], length[1:]  # longest step, shortest pause at each possible cut
        pauses = np.cumsum(counts[::-1])[::-1][1:]
        gap = pause - step
        least_gap = np.maximum(log2(LEAST_LONE_GAP), TAIL_EXPONENT * (step - median))
        cuts = (
            (pauses <= MOST_SHARE * total)
            & (pause >= max(log2(LEAST_S), median + log2(LEAST_MEDIANS)))
            & (gap >= log2(LEAST_GAP))
            & (pauses * gap >= least_gap)
        )
        if not cuts.any():
            return float(2**median), np.inf
        lowest = int(np.argmax(cuts))
        return float(2**median), float(2 ** ((step[lowest] + pause[lowest]) / 2))

    def _far_apart(self, index: Floats) -> bool:
        """Whether the long steps at ``index`` are far enough apart to be pauses."""
        gaps = np.diff(index, prepend=self._last_long, append=np.inf)
        self._last_long = float(index[-1])
        close = (gaps < LEAST_DISTANCE)[:-1] | (gaps < LEAST_DISTANCE)[1:]
        return bool(close.mean() <= _MOST_CLOSE)

    def _rested(self, columns: Columns, paused: Mask) -> Mask:
        """Return which batches rested. Where few come before the next pause or the epoch's end, it
        is half of them."""
        rested = np.zeros(len(columns), dtype=bool)
        before, self._last_pause = self._last_pause, None
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
            most = np.minimum(self._prefetched, between // 2)
            rested[own] = (last >= 0) & (since <= most[last])
            if epoch == columns.epoch[-1]:
                self._last_pause = epoch, float(pauses[-1])
        prefetched: Mask = rested & (columns.worker != -1)
        return prefetched


def with_pauses(batches: BatchLog, columns: Columns) -> BatchLog:
    """Return ``batches`` with the pauses that `PauseFinder.mark` added to ``columns``."""
    if not (columns.pause_s > 0).any():
        return batches
    return replace(
        batches,
        pause_s=tuple(None if isnan(value) else value for value in columns.pause_s.tolist()),
        pause_kind=_whole(columns.pause_kind),
        rested=_whole(columns.rested),
    )


def _whole(values: Floats) -> tuple[int | None, ...]:
    """Return ``values`` as whole numbers, with ``None`` for NaN; empty where all are NaN."""
    if np.isnan(values).all():
        return ()
    return tuple(None if isnan(value) else int(value) for value in values.tolist())
