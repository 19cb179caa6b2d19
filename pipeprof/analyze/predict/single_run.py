"""What other numbers of workers would give, by the simulator, from the batches of one run.

What the run leaves open is simulated with each answer that is possible (`run_meanings`); the
interval holds all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import hypot

import numpy as np

from pipeprof.analyze.predict.calibrate import Calibration, whole
from pipeprof.analyze.predict.predict import (
    BATCHES,
    TOLD_APART,
    Prediction,
    doublings,
    predict,
    settle_by,
)
from pipeprof.analyze.predict.run_meanings import Circumstances, RunMeanings, costlier
from pipeprof.analyze.predict.workload import Demand, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.thresholds import EQUALLY_FAST, LEAST_BATCHES_TO_SIMULATE

_SPARE = 1.15
"""There should be enough workers for batches that cost so many times as much. Workers that are only
just fast enough let the accelerator wait whenever one is late."""
_OPEN = "what cores slow each other down by, or what handing over takes, one run leaves open"
_ROUNDS = 6
"""Of the bootstrap."""
_FAR = 0.03
"""Relative noise that each doubling of workers adds, where no second run shows what they cost each
other."""


class OneRun:
    """The steady part of a run, and what follows from it."""

    def __init__(self, run: Measured, known: Circumstances) -> None:
        self._run = run
        self._meanings = RunMeanings(run, known)
        self._predicted: dict[int, Prediction] = {}
        self._predicted_with_spare: dict[int, Prediction] = {}
        """By workers."""

    @classmethod
    def of(cls, run: Measured, known: Circumstances) -> OneRun | None:
        """``None`` if too few batches were observed from beginning to end."""
        run = whole(run)
        return cls(run, known) if len(run.columns) >= LEAST_BATCHES_TO_SIMULATE else None

    @property
    def columns(self) -> Columns:
        """The batches, whose rows `gains` counts."""
        return self._run.columns

    @property
    def shares(self) -> bool:
        """Whether more workers may find no room on what they wait for."""
        return self._meanings.shares

    def predict(self, workers: int) -> Prediction:
        """What so many ``workers``, at least one, would give, with all else as it was."""
        if workers not in self._predicted:
            setting, measured = self._setting(workers), self._run.setting.num_workers
            far = _FAR * doublings(setting, measured)
            self._predicted[workers] = _together([
                predict(
                    replace(meaning, noise=hypot(meaning.noise, far)), setting,
                    self._meanings.step_s, rounds=_ROUNDS, lone=True, measured=measured,
                )
                for meaning in self._meanings.every
            ])  # fmt: skip
        return self._predicted[workers]

    def enough(self, most: int, target: float) -> int:
        """The fewest workers with which the accelerator is starved for no more than ``target`` of
        the time; if ``most`` of them are too few, the fewest that are as fast as these."""
        best = self._with_spare(most)
        near = best.batches_per_s * (1 - EQUALLY_FAST)

        def suffice(workers: int) -> bool:
            found = self._with_spare(workers)
            if best.starved_fraction <= target:
                return found.starved_fraction <= target
            return found.batches_per_s >= near

        return 1 + bisect_left(range(1, most + 1), True, key=suffice)

    def gains(self, change: Callable[[Demand, int], Demand]) -> list[float]:
        """The gain in batches/s, for each meaning of the run, if its batches asked for what
        ``change`` makes of their demands and rows; 0.1 is 10 % more."""
        found = []
        for meaning, rate in zip(self._meanings.every, self._rates, strict=True):
            changed = [change(demand, row) for row, demand in self._last(meaning)]
            found.append(self._meanings.rate(meaning, changed) / rate - 1)
        return found

    @cached_property
    def _rates(self) -> list[float]:
        """Batches/s of the run as simulated, by meaning."""
        return [
            self._meanings.rate(meaning, [demand for _, demand in self._last(meaning)])
            for meaning in self._meanings.every
        ]

    def _last(self, meaning: Calibration) -> list[tuple[int, Demand]]:
        """As many batches as are simulated, each with its row."""
        return [*enumerate(meaning.demands)][-BATCHES - self._run.setting.unsteady :]

    def _with_spare(self, workers: int) -> Prediction:
        found = self._predicted_with_spare
        if workers not in found:
            setting, step_s = self._setting(workers), self._meanings.step_s
            found[workers] = predict(self._spared, setting, step_s, rounds=1)
        return found[workers]

    @cached_property
    def _spared(self) -> Calibration:
        first = self._meanings.every[0]
        return replace(first, demands=costlier(first.demands, _SPARE))

    def _setting(self, workers: int) -> Setting:
        return replace(self._run.setting, num_workers=workers)


def _together(found: Sequence[Prediction]) -> Prediction:
    """One prediction of all that the run may mean."""
    rates = [each.batches_per_s for each in found]
    apart = max(rates) > (1 + TOLD_APART) * min(rates)
    setting = found[0].setting
    return Prediction(
        setting,
        float(np.mean(rates)),
        (min(each.interval[0] for each in found), max(each.interval[1] for each in found)),
        float(np.mean([each.starved_fraction for each in found])),
        (
            min(each.starved_interval[0] for each in found),
            max(each.starved_interval[1] for each in found),
        ),
        settle_by(setting) if apart else found[0].settle,
        next((each.why for each in found if each.why), _OPEN if apart else ""),
    )
