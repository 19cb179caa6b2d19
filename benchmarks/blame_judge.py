"""Evaluates blame: compares what profiles promise with the gains of runs in which a cost is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from benchmarks.blame_runs import CHEAPER, Cut, Tried, cuts_of, standard_error
from benchmarks.random_loader_runs import starved
from benchmarks.random_loaders import LoaderSpec
from benchmarks.realised_cuts import QUARTER, in_part, realised
from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.intervals import student_t
from pipeprof.model import Speedup, Worth

WORKER_CPU = "worker-cpu"
Outcome = Literal["most", "within noise", "cannot be cut", "wrong"]


@dataclass(frozen=True)
class Said:
    """What one profile reports."""

    blame: Mapping[str, float]
    """Seconds by cause, largest first."""
    worth: Mapping[str, Worth]

    @property
    def first(self) -> str | None:
        """The cause that is blamed first; ``None`` if none is blamed."""
        return next(iter(self.blame), None)

    @property
    def shares(self) -> dict[str, float]:
        """Share of the stall, 0..1, by cause."""
        stall_s = sum(self.blame.values())
        return {cause: seconds / stall_s for cause, seconds in self.blame.items()}

    def promise(self, cause: str) -> Speedup | None:
        """Return the gain promised if the cause were 25 % cheaper; ``None`` if none is for any."""
        if not self.worth:
            return None
        worth = self.worth.get(cause)
        return worth.cheaper if worth else _NOTHING


JUDGED = 3
"""Profiles of a loader that are evaluated. Further turns only make its gains more exact: otherwise
unsteady loaders, which get more turns, would count for more."""
_NOTHING = Speedup(0.0, (0.0, 0.0))
"""The promise of a cause that is not blamed at all."""


@dataclass(frozen=True)
class Held:
    """A promise compared with the measured gain."""

    cause: str
    cut: Cut
    first: bool
    """Whether the promise is of the cause that is blamed first."""
    error: float
    """Promised gain minus the mean gain of all turns; 0.01 is one percentage point. The promise is
    in proportion to how much cheaper the cut made the cause."""
    full_error: float
    """The same with the promise for a whole quarter, however much the cut made of it."""
    holds: bool | None
    """Whether the interval contains the gain of its own turn. ``None``: there is no interval, as
    the cause is not blamed at all."""


@dataclass(frozen=True)
class Judged:
    """A loader's profiles, one for each of the first turns, and the factor that each cut gained in
    each turn."""

    spec: LoaderSpec
    starved: float
    profiles: tuple[Said, ...]
    cuts: Mapping[str, Cut]
    """Cause → costs that are cut for it. Two causes may have the same."""
    gains: Mapping[Cut, tuple[float, ...]]
    others: float | None = None
    """Share of all cores, 0..1, that other processes used during the runs."""
    realised: Mapping[str, float] = field(default_factory=dict)
    """Cause → share by which its cut made it cheaper; a quarter where it is not there."""

    @classmethod
    def of(cls, tried: Tried) -> Judged:
        profiles = [assemble(turn.base) for turn in tried.turns[:JUDGED]]
        cuts = cuts_of(tried.spec)
        return cls(
            tried.spec,
            float(np.median([starved(turn.base) for turn in tried.turns])),
            tuple(Said(each.blame, each.worth) for each in profiles),
            cuts,
            {cut: tuple(turn.gain(cut) for turn in tried.turns) for cut in cuts.values()},
            tried.others,
            {cause: realised(cause, cut, tried.turns) for cause, cut in cuts.items()},
        )

    def gain(self, cause: str) -> float:
        """Return the share by which its cut raised the throughput: the mean of all turns."""
        return float(np.exp(self._log_gain(cause))) - 1

    @cached_property
    def noise(self) -> float:
        """Standard error of a gain, as a share of the throughput; NaN with one turn."""
        return standard_error(list(self.gains.values()))

    def outcome(self, said: Said) -> Outcome:
        """Return whether the cause that is blamed first gains most. If each cost of a run were 25 %
        cheaper, 25 % of its time would be saved, and the savings of single cuts add up to no more.
        So a cause to which no cost belongs can save at most the rest of these 25 %."""
        rivals = [cause for cause in self.cuts if cause != WORKER_CPU or said.first == WORKER_CPU]
        best = max(self._saved(cause) for cause in rivals)
        if said.first is not None and said.first in self.cuts:
            behind = best - self._saved(said.first)
            if behind <= 0:
                return "most"
            return "wrong" if behind > self.difference_by_chance else "within noise"
        disjoint = [cause for cause in self.cuts if cause != WORKER_CPU]
        left = 1 - CHEAPER - sum(max(0.0, self._saved(cause)) for cause in disjoint)
        refuted = said.first is None or best - left > self.difference_by_chance
        return "wrong" if refuted else "cannot be cut"

    def held(self) -> list[Held]:
        """Return the promises of all profiles about costs that were cut."""
        found = []
        for turn, said in enumerate(self.profiles):
            for cause, cut in self.cuts.items():
                promise = said.promise(cause)
                # a resource that is not blamed limits none of its costs, so nothing is promised
                if promise is None or (promise is _NOTHING and cause == WORKER_CPU):
                    continue
                part = self.realised.get(cause, QUARTER)
                low, high = (in_part(end, part) for end in promise.interval)
                holds = low <= self.gains[cut][turn] - 1 <= high
                gain = self.gain(cause)
                errors = in_part(promise.share, part) - gain, promise.share - gain
                told = None if promise is _NOTHING else holds
                found.append(Held(cause, cut, cause == said.first, *errors, told))
        return found

    def _log_gain(self, cause: str) -> float:
        return float(np.mean(np.log(self.gains[self.cuts[cause]])))

    def _saved(self, cause: str) -> float:
        """Return the share of the time that the cut of this cause saves."""
        return 1 - float(np.exp(-self._log_gain(cause)))

    @property
    def _freedom(self) -> int:
        return sum(len(gains) - 1 for gains in self.gains.values())

    @property
    def difference_by_chance(self) -> float:
        """Largest difference between the measurements of two equal gains, in 95 % of cases. It is
        NaN with one turn, from which the effect of chance cannot be estimated."""
        if self._freedom < 1:
            return float("nan")
        return student_t(self._freedom) * self.noise * 2**0.5
