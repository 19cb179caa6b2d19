"""Measures the errors of predictions that are calibrated on short runs with 0, 1 and 2 workers.
They are compared with real runs in other settings with the same training step.

    python -m benchmarks.prediction [--pipelines A,B] [--seconds S] [--repeats N] [--quick]
                                    [--workers 0,1] [--steps-ms 0,5] [--seeds 1,2]
                                    [--keep FILE | --kept FILE…] [--verbose]

Each pipeline with each step is predicted separately, as a profile has the user's step. The speed of
a machine changes within minutes, and runs of one setting differ. So runs are grouped in bouts of
half a minute, minutes apart, each with its own samples. Each bout runs every setting once, in
random order, between three calibrations. These use other samples, are as long, and predict the runs
of that bout. How much runs of one setting differ is estimated from all bouts.

A cell is a setting in all bouts. Its error is the median of its bouts' errors, each of a prediction
and a run that are seconds apart. *Declined* is the share of predictions that give no number, but
name the run that would decide it. Errors are those of throughput, over cells in which the
accelerator waits 5 % of the time or more. The noise of a cell is the standard error of its error,
estimated from its bouts. The last line is of all bouts together, not of the median bout. Pipelines
whose rate is determined by a few slow batches are run `LONGER` times as long. ``--keep`` writes the
runs to a file, and ``--kept`` predicts those of such files, without new runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from benchmarks.prediction_lab import LAB
from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import (
    QUICK,
    TAKES,
    Grid,
    Job,
    Runs,
    calibration_jobs,
    load,
    measure_all,
    place,
    save,
)
from pipeprof.analyze.predict.calibrate import Calibration, calibrate
from pipeprof.analyze.predict.predict import Prediction, predict
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.intervals import standard_error
from pipeprof.analyze.wording.prediction import deciding_run, open_question

_STALLED = 0.05

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


def print_cell(one: Cell) -> None:
    job = one.job
    rates = " ".join(f"{run.batches_per_s:.1f}" for run in one.runs)
    print(
        f"    W={job.num_workers} P={job.prefetch_factor} step {job.step_s * 1e3:4.0f} ms: error "
        f"{one.error:+6.1%}, noise {one.noise:5.1%}, ± {one.half_width:.1%}; starved "
        f"{one.starved_fraction:.1%}, predicted {one.starved_error:+.1%}; predicted "
        f"{one.predicted:.1f}, measured {rates}{_declined(one)}",
        flush=True,
    )


def _declined(one: Cell) -> str:
    why = open_question(one.bouts[0][0].open_question)
    return f"; {one.settle}{why and f', since {why}'}" if one.settle else ""


def print_row(name: str, cells: Sequence[Cell], together: bool = False) -> None:
    """Print a row of the table. ``together``: of all bouts together, not of the median bout."""
    stalled = [one for one in cells if one.starved_fraction >= _STALLED]
    given = [one for one in stalled if not one.settle]
    if not given:
        print(f"{name:<15}{len(stalled):>4} cells, none with a number")
        return
    declined = 1 - sum(len(one.given) for one in given) / sum(len(one.bouts) for one in stalled)
    errors = np.abs([one.overall_error if together else one.error for one in given])
    starved = np.abs([
        one.overall_starved_error if together else one.starved_error for one in given
    ])  # fmt: skip
    print(
        f"{name:<15}{len(stalled):>6}{declined:>10.0%}"
        f"{np.median(errors):>9.1%}{np.mean(errors <= 0.10):>8.0%}"
        f"{np.percentile(errors, 95):>8.1%}{errors.max():>8.1%}"
        f"{np.median(starved):>9.1%}{starved.max():>8.1%}"
        f"{np.mean([one.held for one in given]):>8.0%}"
        f"{np.median([one.half_width for one in given]):>8.1%}"
        f"{np.median([one.noise for one in given]):>8.1%}",
        flush=True,
    )


def asked_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.add_argument("--pipelines", default=",".join((*PIPELINES, *LAB)))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument(
        "--repeats", type=int, default=1, help="bouts of each pipeline, step and seed"
    )
    parser.add_argument("--seeds", default="6,7,8", help="of what is random in the pipelines")
    parser.add_argument("--workers", default="0,1,2,4,8", help="to predict")
    parser.add_argument("--steps-ms", default="0,5,20", help="training steps")
    parser.add_argument("--quick", action="store_true", help="a smaller grid")
    parser.add_argument("--verbose", action="store_true", help="each cell")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    parser.add_argument(
        "--kept", type=Path, nargs="+", metavar="FILE", help="predict the runs from there"
    )
    return parser.parse_args()


def can_be_run(name: str) -> bool:
    try:
        with place(name):
            return True
    except pytest.skip.Exception as missing:
        print(f"{name} is LEFT OUT: {missing}", flush=True)
        return False


def runs_for(options: argparse.Namespace, names: Sequence[str], seeds: Sequence[int]) -> Runs:
    if options.kept:
        return {job: run for path in options.kept for job, run in load(path).items()}
    workers = tuple(int(each) for each in options.workers.split(","))
    steps_s = tuple(float(each) / 1e3 for each in options.steps_ms.split(","))
    grid = QUICK if options.quick else Grid(workers, steps_s=steps_s)

    runs = measure_all(
        grid.groups(list(filter(can_be_run, names)), seeds), options.repeats, options.seconds
    )
    if options.keep:
        save(runs, options.keep)
    return runs


def main() -> int:
    options = asked_of()
    names, seeds = options.pipelines.split(","), [int(seed) for seed in options.seeds.split(",")]
    runs = runs_for(options, names, seeds)
    print(
        "throughput: error over stalled cells; starved: points apart; held: runs within intervals\n"
        f"{'pipeline':<15}{'cells':>6}{'declined':>10}{'median':>9}{'≤10 %':>8}{'95th':>8}"
        f"{'worst':>8}{'starved':>9}{'worst':>8}{'held':>8}{'±':>8}{'noise':>8}"
    )
    every: list[Cell] = []
    for name in dict.fromkeys(job.pipeline for job in runs):
        cells = cells_of(runs, name)
        if options.verbose:
            for one in cells:
                print_cell(one)
        print_row(name, cells)
        every += cells
    print_row("all", every)
    print_row("bouts together", every, together=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
