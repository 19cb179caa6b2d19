"""How wrong predictions are: calibrated on short runs with 0, 1 and 2 workers, held against real
runs in other settings.

    python -m benchmarks.prediction [--pipelines A,B] [--seconds S] [--repeats N] [--quick]
                                    [--seeds 1,2] [--keep FILE | --kept FILE] [--verbose]

A machine is not as fast in one minute as in the next. So the settings of a pipeline are run in
bouts of half a minute, calibrations among them, and each bout is predicted from its own
calibrations; the error of a cell is the middle one of its bouts'. An error is that of throughput,
over cells in which the accelerator waits 5 % of the time or more. The noise of a cell is half of
what measured over predicted lies apart from bout to bout. ``--keep`` writes the runs to a file, and
``--kept`` predicts those of such a file instead of making any.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
    repeats_of,
    save,
)
from pipeprof.analyze.calibrate import Calibration, calibrate
from pipeprof.analyze.predict import Prediction, predict
from pipeprof.analyze.way import Measured

_STALLED = 0.05


@dataclass(frozen=True)
class Pair:
    """Of one bout."""

    prediction: Prediction
    batches_per_s: float
    starved_fraction: float
    """As measured, both."""

    @property
    def error(self) -> float:
        return self.prediction.batches_per_s / self.batches_per_s - 1

    @property
    def starved_error(self) -> float:
        return self.prediction.starved_fraction - self.starved_fraction

    @property
    def held(self) -> bool:
        low, high = self.prediction.interval
        return low <= self.batches_per_s <= high

    @property
    def half_width(self) -> float:
        low, high = self.prediction.interval
        return (high - low) / 2 / self.prediction.batches_per_s


@dataclass(frozen=True)
class Cell:
    job: Job
    pairs: tuple[Pair, ...]

    def middle(self, of: Callable[[Pair], float]) -> float:
        return float(np.median([of(pair) for pair in self.pairs]))

    @property
    def error(self) -> float:
        return self.middle(lambda pair: pair.error)

    @property
    def starved_error(self) -> float:
        return self.middle(lambda pair: pair.starved_error)

    @property
    def starved_fraction(self) -> float:
        return self.middle(lambda pair: pair.starved_fraction)

    @property
    def half_width(self) -> float:
        return self.middle(lambda pair: pair.half_width)

    @property
    def noise(self) -> float:
        errors = [pair.error for pair in self.pairs]
        return (max(errors) - min(errors)) / 2

    @property
    def held(self) -> float:
        """The share of its bouts: an interval is of one run."""
        return float(np.mean([pair.held for pair in self.pairs]))

    @property
    def settle(self) -> str:
        """What the first prediction that declines asks for."""
        return next(filter(None, (pair.prediction.settle for pair in self.pairs)), "")


def cells_of(runs: Runs, pipeline: str, seed: int) -> list[Cell]:
    found = calibrations(runs, pipeline, seed)
    return [
        Cell(
            job,
            tuple(pair(found[bout], run) for bout, run in sorted(repeats_of(runs, job).items())),
        )
        for job in runs
        if (job.pipeline, job.seed, job.repeat) == (pipeline, seed, 0)
    ]


def calibrations(runs: Runs, pipeline: str, seed: int) -> dict[int, Calibration]:
    """By bout."""
    by_bout: dict[int, list[Measured]] = {}
    for take in range(TAKES):
        for job in calibration_jobs(pipeline, seed, take):
            for bout, run in repeats_of(runs, job).items():
                by_bout.setdefault(bout, []).append(run)
    cores = len(os.sched_getaffinity(0))
    return {bout: calibrate(measured, cores) for bout, measured in by_bout.items()}


def pair(found: Calibration, run: Measured) -> Pair:
    columns = run.columns
    starved = float(columns.wait_s.sum() / columns.cycle_s.sum())
    return Pair(predict(found, run.setting, columns.step_s), run.batches_per_s, starved)


def print_cell(one: Cell) -> None:
    job = one.job
    rates = " ".join(
        f"{pair.prediction.batches_per_s:.1f}:{pair.batches_per_s:.1f}" for pair in one.pairs
    )
    print(
        f"    W={job.num_workers} P={job.prefetch_factor} step {job.step_s * 1e3:4.0f} ms: error "
        f"{one.error:+6.1%}, noise {one.noise:5.1%}, ± {one.half_width:.1%}; starved "
        f"{one.starved_fraction:.1%}, predicted {one.starved_error:+.1%}; predicted:measured "
        f"{rates}{'; ' + one.settle if one.settle else ''}",
        flush=True,
    )


def print_row(name: str, cells: Sequence[Cell]) -> None:
    stalled = [one for one in cells if one.starved_fraction >= _STALLED]
    given = [one for one in stalled if not one.settle]
    if not given:
        print(f"{name:<15}{len(stalled):>4} cells, none with a number")
        return
    errors = np.abs([one.error for one in given])
    starved = [abs(one.starved_error) for one in given]
    print(
        f"{name:<15}{len(stalled):>6}{1 - len(given) / len(stalled):>10.0%}"
        f"{np.median(errors):>9.1%}{np.mean(errors <= 0.10):>8.0%}{errors.max():>8.1%}"
        f"{np.median(starved):>9.1%}{max(starved):>8.1%}"
        f"{np.mean([one.held for one in given]):>8.0%}"
        f"{np.median([one.half_width for one in given]):>8.1%}"
        f"{np.median([one.noise for one in given]):>8.1%}",
        flush=True,
    )


def asked_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prediction", description=__doc__)
    parser.add_argument("--pipelines", default=",".join(PIPELINES))
    parser.add_argument("--seconds", type=float, default=0.8, help="of each run")
    parser.add_argument(
        "--repeats", type=int, default=3, help="bouts of each pipeline; the middle one counts"
    )
    parser.add_argument("--seeds", default="1", help="of what is random in the pipelines")
    parser.add_argument("--quick", action="store_true", help="a smaller grid")
    parser.add_argument("--verbose", action="store_true", help="each cell")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="predict the runs from there")
    return parser.parse_args()


def runs_for(options: argparse.Namespace, names: Sequence[str], seeds: Sequence[int]) -> Runs:
    if options.kept:
        return load(options.kept)
    grid = QUICK if options.quick else Grid()
    groups = [grid.jobs(name, seed) for name in names for seed in seeds]

    def tell(job: Job, run: Measured) -> None:
        print(f"  {job.key}: {run.batches_per_s:.1f} batches/s", file=sys.stderr, flush=True)

    runs = measure_all(groups, options.repeats, options.seconds, tell)
    if options.keep:
        save(runs, options.keep)
    return runs


def main() -> int:
    options = asked_of()
    names, seeds = options.pipelines.split(","), [int(seed) for seed in options.seeds.split(",")]
    runs = runs_for(options, names, seeds)
    print(
        "throughput: error over stalled cells; starved: points apart; held: runs within intervals\n"
        f"{'pipeline':<15}{'cells':>6}{'declined':>10}{'median':>9}{'≤10 %':>8}{'worst':>8}"
        f"{'starved':>9}{'worst':>8}{'held':>8}{'±':>8}{'noise':>8}"
    )
    every: list[Cell] = []
    for name in names:
        cells = [one for seed in seeds for one in cells_of(runs, name, seed)]
        if options.verbose:
            for one in cells:
                print_cell(one)
        print_row(name, cells)
        every += cells
    print_row("all", every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
