"""How wrong predictions are: calibrated on short runs with 0, 1 and 2 workers, held against real
runs in other settings.

    python -m benchmarks.prediction [--pipelines A,B] [--seconds S] [--repeats N] [--quick]
                                    [--seeds 1,2] [--keep FILE | --kept FILE] [--verbose]

A machine is not as fast in one minute as in the next, so each setting is run several times, spread
over the whole benchmark: predictions are made from all runs of theirs, and held against the middle
one of those of a cell. An error is that of throughput, over cells in which the accelerator
waits 5 % of the time or more. The noise of a cell is half of what its own runs lie apart.
``--keep`` writes the runs to a file, and ``--kept`` predicts those of such a file instead of making
any.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import (
    QUICK,
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
class Cell:
    job: Job
    prediction: Prediction
    rates: tuple[float, ...]
    """Batches/s of its runs, the slowest first."""
    starved_fraction: float

    @property
    def error(self) -> float:
        return self.prediction.batches_per_s / self.batches_per_s - 1

    @property
    def batches_per_s(self) -> float:
        return self.rates[len(self.rates) // 2]

    @property
    def noise(self) -> float:
        return (self.rates[-1] - self.rates[0]) / 2 / self.batches_per_s

    @property
    def held(self) -> float:
        """The share of its runs: an interval is of one."""
        low, high = self.prediction.interval
        return float(np.mean([low <= rate <= high for rate in self.rates]))

    @property
    def half_width(self) -> float:
        low, high = self.prediction.interval
        return (high - low) / 2 / self.prediction.batches_per_s


def cell(found: Calibration, job: Job, runs: Sequence[Measured]) -> Cell:
    run = runs[len(runs) // 2]
    columns = run.columns
    return Cell(
        job,
        predict(found, run.setting, columns.step_s),
        tuple(each.batches_per_s for each in runs),
        float(columns.wait_s.sum() / columns.cycle_s.sum()),
    )


def cells_of(runs: Runs, pipeline: str, seed: int) -> list[Cell]:
    calibration = [run for job in calibration_jobs(pipeline, seed) for run in repeats_of(runs, job)]
    found = calibrate(calibration, len(os.sched_getaffinity(0)))
    return [
        cell(found, job, repeats_of(runs, job))
        for job in runs
        if (job.pipeline, job.seed, job.repeat) == (pipeline, seed, 0)
    ]


def print_cell(one: Cell) -> None:
    told = one.prediction
    low, high = told.interval
    print(
        f"    W={one.job.num_workers} P={one.job.prefetch_factor} "
        f"step {one.job.step_s * 1e3:4.0f} ms: "
        f"predicted {told.batches_per_s:7.1f} ({low:.1f}–{high:.1f}), measured "
        f"{one.batches_per_s:7.1f}, error {one.error:+6.1%}, noise {one.noise:5.1%}; starved "
        f"{told.starved_fraction:.1%} and {one.starved_fraction:.1%}"
        f"{'; ' + told.settle if told.settle else ''}",
        flush=True,
    )


def print_row(name: str, cells: Sequence[Cell]) -> None:
    stalled = [one for one in cells if one.starved_fraction >= _STALLED]
    given = [one for one in stalled if not one.prediction.settle]
    if not given:
        print(f"{name:<15}{len(stalled):>4} cells, none with a number")
        return
    errors = np.abs([one.error for one in given])
    starved = [abs(one.prediction.starved_fraction - one.starved_fraction) for one in given]
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
    parser.add_argument("--repeats", type=int, default=3, help="of each run; the middle one counts")
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
    jobs = [
        job
        for name in names
        for seed in seeds
        for job in [*calibration_jobs(name, seed), *grid.jobs(name, seed)]
    ]

    def tell(job: Job, run: Measured) -> None:
        print(f"  {job.key}: {run.batches_per_s:.1f} batches/s", file=sys.stderr, flush=True)

    runs = measure_all(jobs, options.repeats, options.seconds, tell)
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
