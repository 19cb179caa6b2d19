"""Put the steps of all ranks side by side.

Ranks that synchronise end each step together, so a step with its wait lasts equally long for all of
them, whatever their clocks say. The later a rank has its batch, the less it waits within the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from statistics import median

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.job.rank_steps import RankSteps
from pipeprof.analyze.profile.batch_table import Floats

Times = npt.NDArray[np.float64]
"""[ranks, steps], seconds."""
_SLACK = 0.05
"""Share of a median step. Ranks that are ready within it of each other may each be the last one."""
_LEAST_LAST = 10
"""Fewest steps from which to see whether a rank's step becomes shorter as it waits longer."""
_VARIED = 0.01
"""Standard deviation of these waits, as a share of a median step. Less shows no slope."""
_SHORTER = -0.5
"""Slope of a rank's step over its wait. A rank that waits for others has -1, the last one 0."""
_OWN_PACE = 0.9
"""Share of a median step that a rank's workers need for a batch. From here on they set the pace."""
_LEAST_STEP = 5.0
"""Percentile of a rank's steps that is taken for a step in which it did not wait for others. Lower
ones are chance."""


@dataclass(frozen=True)
class JobSteps:
    """What each rank did in the steps that all ranks have. [ranks, steps], seconds."""

    stalls_s: Times
    """How long each rank waited for its batch."""
    steps_s: Times
    """How long its step lasted, with what it waited for other ranks."""
    pace_s: Floats
    """Seconds in which each rank's workers can build a batch; 0 without workers. [ranks]"""
    rows: npt.NDArray[np.intp]
    """Where each step is among those of the rank. [ranks, steps]"""

    @classmethod
    def of(cls, ranks: Sequence[RankSteps]) -> JobSteps:
        """Return the steps that all ``ranks`` have."""
        common = ranks[0].steps
        for rank in ranks[1:]:
            common = np.intersect1d(common, rank.steps, assume_unique=True)
        rows = np.array([np.searchsorted(rank.steps, common) for rank in ranks])
        paused = [rank.paused[row] for rank, row in zip(ranks, rows, strict=True)]
        rows = rows[:, ~np.all(paused, axis=0)]
        return cls(
            np.array([rank.stall_s[row] for rank, row in zip(ranks, rows, strict=True)]),
            np.array([rank.rest_s[row] for rank, row in zip(ranks, rows, strict=True)]),
            np.array([rank.pace_s for rank in ranks]),
            rows,
        )

    @cached_property
    def cycles_s(self) -> Floats:
        """Duration of each step with its wait; the median over the ranks. [steps]"""
        return np.median(self.stalls_s + self.steps_s, axis=0)

    @cached_property
    def last(self) -> npt.NDArray[np.int64]:
        """The rank for whose batch all others waited in each step. [steps]

        Its wait, and a step as short as its shortest ones, end last. In its shortest steps a rank
        waited for nobody, unless it always waits for others. Such a rank's steps become shorter
        the longer it waits for its batch, so that all end together; it is taken out.
        So do those of a rank whose own workers set the pace, but it waits for nobody.
        """
        shortest_s = np.percentile(self.steps_s, _LEAST_STEP, axis=1, keepdims=True)
        own_pace = self.pace_s >= _OWN_PACE * np.median(self.cycles_s)
        # no later than it was: a rank that is never alone has no short step
        at_most_s = np.where(own_pace[:, None], self.steps_s, np.minimum(shortest_s, self.steps_s))
        ready_s = self.stalls_s + at_most_s
        while True:
            may_be = ready_s >= ready_s.max(axis=0) - _SLACK * np.median(self.cycles_s)
            last: npt.NDArray[np.int64] = np.where(may_be, self.stalls_s, -1.0).argmax(axis=0)
            waiting = [
                rank
                for rank in np.flatnonzero(~own_pace).tolist()
                if self._waits(rank, last == rank)
            ]
            if not waiting or np.isinf(ready_s).sum(axis=0).max() + len(waiting) >= len(ready_s):
                return last
            ready_s[waiting] = -np.inf

    def _waits(self, rank: int, taken: npt.NDArray[np.bool_]) -> bool:
        """Return whether ``rank`` waits for others in the steps in which it is taken for the last
        one."""
        stalls_s, steps_s = self.stalls_s[rank, taken], self.steps_s[rank, taken]
        if len(stalls_s) < _LEAST_LAST or stalls_s.std() < _VARIED * np.median(self.cycles_s):
            return False
        slope = np.cov(stalls_s, steps_s)[0, 1] / stalls_s.var(ddof=1)
        return bool(slope < _SHORTER)

    @cached_property
    def stall_s(self) -> Floats:
        """How long the last rank of each step waited for its batch: the job's stall. [steps]"""
        stall_s: Floats = self.stalls_s[self.last, np.arange(self.stalls_s.shape[1])]
        return stall_s

    @cached_property
    def own_steps_s(self) -> Times:
        """How long each step would last if no rank waited for others. [ranks, steps]

        Known where the rank was last; elsewhere it is the median of those steps. A rank that was
        hardly ever last is taken to compute like those that were, as all train one model.
        """
        ranks, steps = self.steps_s.shape
        counts = np.bincount(self.last, minlength=ranks)
        enough = max(_LEAST_LAST, steps / ranks / 2)  # a few may be taken wrongly
        medians = [
            float(np.median(steps_s[self.last == rank])) if count >= enough else None
            for rank, (steps_s, count) in enumerate(zip(self.steps_s, counts, strict=True))
        ]
        of_others = median([each for each in medians if each is not None] or [inf])
        own: Times = self.steps_s.copy()
        for rank, usual in enumerate(medians):
            at_most = of_others if usual is None else usual
            alone = self.last == rank
            own[rank] = np.where(alone, own[rank], np.minimum(own[rank], at_most))
        return own

    def gain_with(self, stalls_s: Times, pace_s: Floats) -> float:
        """Return the relative gain in steps/s if ranks waited ``stalls_s`` for their batches.

        No rank is faster than its workers, who then have less time for each batch and need
        ``pace_s``.
        """
        cycles_s = (stalls_s + self.own_steps_s).max(axis=0)
        total_s = max(float(cycles_s.sum()), float(pace_s.max()) * len(cycles_s))
        return max(0.0, float(self.cycles_s.sum()) / total_s - 1)
