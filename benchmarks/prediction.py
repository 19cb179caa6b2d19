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
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.prediction_cells import Cell, cells_of
from benchmarks.prediction_lab import LAB
from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import (
    QUICK,
    Grid,
    Runs,
    load,
    measure_all,
    place,
    save,
)
from pipeprof.analyze.wording.prediction import open_question

_STALLED = 0.05


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
