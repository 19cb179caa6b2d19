"""Predict what other numbers of workers would give, by simulation, from the batches of one run.

What the run leaves open is simulated under each possible hypothesis (`run_hypotheses`); the
interval covers all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from math import hypot

import numpy as np

from pipeprof.analyze.predict.calibrate import Calibration, with_fetch_times
from pipeprof.analyze.predict.predict import BATCHES, Prediction, doublings, predict
from pipeprof.analyze.predict.run_hypotheses import RunContext, RunHypotheses, scaled_costs
from pipeprof.analyze.predict.workload import Demand, Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.thresholds import (
    EQUAL_WITHIN,
    EQUALLY_FAST,
    LEAST_BATCHES_TO_SIMULATE,
    SPARE_CAPACITY,
)

_ROUNDS = 6
"""Bootstrap rounds of each hypothesis."""
_NOISE_PER_DOUBLING = 0.03
"""Relative noise that each doubling of workers adds, where no second run shows what they cost each
other."""


class SingleRun:
    """The steady part of a run, and predictions from it."""

    def __init__(self, run: Measured, context: RunContext) -> None:
        self._run = run
        self._hypotheses = RunHypotheses(run, context)
        self._predicted: dict[tuple[Setting, int], Prediction] = {}
        """Setting and rounds → prediction."""
        self._predicted_with_spare: dict[int, Prediction] = {}
        """Number of workers → prediction for batches that need `SPARE_CAPACITY`."""

    @classmethod
    def of(cls, run: Measured, context: RunContext) -> SingleRun | None:
        """Return ``None`` if too few batches were observed from beginning to end."""
        run = with_fetch_times(run)
        return cls(run, context) if len(run.columns) >= LEAST_BATCHES_TO_SIMULATE else None

    @property
    def columns(self) -> Columns:
        """The batches of the run, whose rows `gains` refers to."""
        return self._run.columns

    @property
    def shares(self) -> bool:
        """Whether what workers wait for may have no room for more of them."""
        return self._hypotheses.shares

    def predict(self, workers: int) -> Prediction:
        """Predict the run with ``workers``, at least one, and all else unchanged."""
        return self.predict_setting(self._setting(workers))

    def predict_setting(self, setting: Setting, rounds: int = _ROUNDS) -> Prediction:
        """Predict the run with ``setting``, from ``rounds`` of the bootstrap."""
        if (setting, rounds) not in self._predicted:
            measured = self._run.setting.num_workers
            noise = _NOISE_PER_DOUBLING * doublings(setting, measured)
            self._predicted[setting, rounds] = _combined([
                predict(
                    replace(hypothesis, noise=hypot(hypothesis.noise, noise)), setting,
                    self._hypotheses.step_s(setting), rounds=rounds, lone=True, measured=measured,
                )
                for hypothesis in self._hypotheses.every
            ])  # fmt: skip
        return self._predicted[setting, rounds]

    def quick_rate(self, setting: Setting) -> float:
        """Return simulated batches/s with ``setting``, as the mean of the hypotheses, without an
        interval."""
        return float(np.mean([
            predict(each, setting, self._hypotheses.step_s(setting), rounds=1).batches_per_s
            for each in self._hypotheses.every
        ]))  # fmt: skip

    def enough(self, most: int, target: float) -> int:
        """Return the fewest workers that starve the accelerator for at most ``target`` of the time.
        If even ``most`` workers are too few, return the fewest that are as fast as these."""
        best = self._with_spare(most)
        least_rate = best.batches_per_s * (1 - EQUALLY_FAST)

        def suffice(workers: int) -> bool:
            prediction = self._with_spare(workers)
            if best.starved_fraction <= target:
                return prediction.starved_fraction <= target
            return prediction.batches_per_s >= least_rate

        return 1 + bisect_left(range(1, most + 1), True, key=suffice)

    def gains(self, change: Callable[[Demand, int], Demand]) -> list[float]:
        """Return the gain in batches/s by hypothesis, if ``change`` were applied to each demand and
        its row; 0.1 is 10 % more."""
        gains = []
        for hypothesis, rate in zip(self._hypotheses.every, self._rates, strict=True):
            changed = [change(demand, row) for row, demand in self._last(hypothesis)]
            gains.append(self._hypotheses.rate(hypothesis, changed) / rate - 1)
        return gains

    @cached_property
    def _rates(self) -> list[float]:
        """Simulated batches/s of the run by hypothesis."""
        return [
            self._hypotheses.rate(hypothesis, [demand for _, demand in self._last(hypothesis)])
            for hypothesis in self._hypotheses.every
        ]

    def _last(self, hypothesis: Calibration) -> list[tuple[int, Demand]]:
        """Return as many last batches as are simulated, each with its row."""
        return [*enumerate(hypothesis.demands)][-BATCHES - self._run.setting.unsteady :]

    def _with_spare(self, workers: int) -> Prediction:
        """Predict the run with ``workers`` on batches that cost `SPARE_CAPACITY` times as much."""
        predicted = self._predicted_with_spare
        if workers not in predicted:
            setting = self._setting(workers)
            step_s = self._hypotheses.step_s(setting)
            predicted[workers] = predict(self._with_scaled_costs, setting, step_s, rounds=1)
        return predicted[workers]

    @cached_property
    def _with_scaled_costs(self) -> Calibration:
        first = self._hypotheses.every[0]
        return replace(first, demands=scaled_costs(first.demands, SPARE_CAPACITY))

    def _setting(self, workers: int) -> Setting:
        return replace(self._run.setting, num_workers=workers)


def _combined(predictions: Sequence[Prediction]) -> Prediction:
    """Return one prediction that covers those of all hypotheses."""
    rates = [each.batches_per_s for each in predictions]
    differ = max(rates) > (1 + EQUAL_WITHIN) * min(rates)
    first = predictions[0]
    question = next((each.open_question for each in predictions if each.open_question), "")
    return Prediction(
        first.setting,
        float(np.mean(rates)),
        (min(each.interval[0] for each in predictions),
         max(each.interval[1] for each in predictions)),
        float(np.mean([each.starved_fraction for each in predictions])),
        (min(each.starved_interval[0] for each in predictions),
         max(each.starved_interval[1] for each in predictions)),
        {"num_workers": first.setting.num_workers} if differ else first.deciding_run,
        question or ("single-run" if differ else ""),
    )  # fmt: skip
