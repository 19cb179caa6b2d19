"""Cells of the prediction benchmark: settings, with their predictions and their real runs.

Each bout is predicted from its own calibrations. See `benchmarks.prediction`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from benchmarks.prediction_runs import TAKES, Job, Runs, calibration_jobs
from pipeprof.analyze.predict.calibrate import Calibration, calibrate
from pipeprof.analyze.predict.predict import Prediction, predict
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.intervals import standard_error
from pipeprof.analyze.wording.prediction import deciding_run

Bout: TypeAlias = tuple[str, float, int, int]
"""The pipeline, the step in seconds, the seed and the repeat of a bout."""


@dataclass(frozen=True)
class Cell:
    """A setting, with its prediction and its measured run in each bout."""

    job: Job
    bouts: tuple[tuple[Prediction, Measured], ...]

    @property
    def given(self) -> list[tuple[Prediction, Measured]]:
        """Bouts in which the prediction has a number."""
        return [bout for bout in self.bouts if not bout[0].deciding_run]

    @property
    def predictions(self) -> list[Prediction]:
        return [told for told, _ in self.given or self.bouts]

    @property
    def runs(self) -> list[Measured]:
        return [run for _, run in self.given or self.bouts]

    @property
    def batches_per_s(self) -> float:
        """Measured rate of all its runs together."""
        return self._batches / sum(run.seconds for run in self.runs)

    @property
    def predicted(self) -> float:
        """Predicted batches/s of all its runs together, with as many batches in each."""
        return self._batches / float(sum(self._predicted_s))

    @property
    def starved_fraction(self) -> float:
        """Measured share of the time in which the training waited for a batch."""
        waited_s = sum(float(run.columns.wait_s.sum()) for run in self.runs)
        return waited_s / sum(run.seconds for run in self.runs)

    @property
    def error(self) -> float:
        """Median of ``errors``, so that a bout in which the machine is much slower does not count
        against the model."""
        return float(np.median(self.errors))

    @property
    def errors(self) -> list[float]:
        """Relative error in each bout, in which prediction and run are seconds apart."""
        return [
            one.batches_per_s / run.batches_per_s - 1
            for one, run in zip(self.predictions, self.runs, strict=True)
        ]

    @property
    def overall_error(self) -> float:
        """Relative error of all bouts together."""
        return self.predicted / self.batches_per_s - 1

    @property
    def starved_error(self) -> float:
        """Median over the bouts of the predicted minus the measured starved share."""
        return float(np.median([
            one.starved_fraction - float(run.columns.wait_s.sum()) / run.seconds
            for one, run in zip(self.predictions, self.runs, strict=True)
        ]))  # fmt: skip

    @property
    def overall_starved_error(self) -> float:
        told = [one.starved_fraction for one in self.predictions]
        return float(np.average(told, weights=self._predicted_s)) - self.starved_fraction

    @property
    def half_width(self) -> float:
        return float(np.mean([
            (one.interval[1] - one.interval[0]) / 2 / one.batches_per_s for one in self.predictions
        ]))  # fmt: skip

    @property
    def noise(self) -> float:
        """Standard error of ``error``, estimated from the differences between bouts."""
        off = [
            run.seconds / told_s for run, told_s in zip(self.runs, self._predicted_s, strict=True)
        ]
        if len(off) == 1:  # then from the difference between its halves
            off = [float(half.mean()) for half in np.array_split(self.runs[0].columns.cycle_s, 2)]
        return standard_error(np.array(off)) / float(np.mean(off))

    @property
    def held(self) -> float:
        """Share of its runs inside their interval, which is for a single run."""
        return float(np.mean([
            one.interval[0] <= run.batches_per_s <= one.interval[1]
            for one, run in zip(self.predictions, self.runs, strict=True)
        ]))  # fmt: skip

    @property
    def settle(self) -> str:
        """Where no number is given, the run that would decide it; else empty."""
        return "" if self.given else deciding_run(self.bouts[0][0].deciding_run)

    @property
    def _batches(self) -> int:
        return sum(len(run.columns) for run in self.runs)

    @property
    def _predicted_s(self) -> list[float]:
        """Seconds that each run was predicted to take."""
        return [
            len(run.columns) / one.batches_per_s
            for one, run in zip(self.predictions, self.runs, strict=True)
        ]


def cells_of(runs: Runs, pipeline: str) -> list[Cell]:
    jobs = [job for job in runs if job.pipeline == pipeline and job.seed > 0]
    found = _as_noisy({bout: calibration(runs, *bout) for bout in sorted(set(map(bout_of, jobs)))})
    cells: dict[tuple[Setting, float], list[Job]] = {}
    for job in jobs:
        cells.setdefault((job.setting, job.step_s), []).append(job)
    return [
        Cell(
            each[0],
            tuple((predicted(found[bout_of(job)], job, runs[job]), runs[job]) for job in each),
        )
        for each in cells.values()
    ]


def _as_noisy(found: Mapping[Bout, Calibration]) -> dict[Bout, Calibration]:
    """Replace each calibration's noise by the pooled noise of all bouts with its step. The runs of
    a single bout are too few to estimate it."""
    steps = {bout[1] for bout in found}
    of_step = {at: [each.noise for bout, each in found.items() if bout[1] == at] for at in steps}
    noise = {at: float(np.sqrt(np.mean(np.square(each)))) for at, each in of_step.items()}
    return {bout: replace(each, noise=noise[bout[1]]) for bout, each in found.items()}


def bout_of(job: Job) -> Bout:
    return job.pipeline, job.step_s, job.seed, job.repeat


def calibration(runs: Runs, pipeline: str, step_s: float, seed: int, repeat: int) -> Calibration:
    """Return the calibration of that bout."""
    jobs = [
        replace(job, repeat=repeat)
        for take in range(TAKES)
        for job in calibration_jobs(pipeline, step_s, seed, take)
    ]
    return calibrate([runs[job] for job in jobs if job in runs], len(os.sched_getaffinity(0)))


def predicted(found: Calibration, job: Job, run: Measured) -> Prediction:
    """Predict a run with the steps of ``run`` and as many batches."""
    return predict(found, job.setting, run.columns.step_s, batches=len(run.columns))
