"""How good the answer of a model-guided sweep is, and how many settings of its grid it had to try.

    python -m benchmarks.sweep_guided [--seconds S] [--seed N] [--pairs N] [--keep FILE]
    python -m benchmarks.sweep_guided FILE

Without a file it makes the runs: 25 settings of each pipeline with two training steps, in random
order. A sweep is of one pipeline with one step: of the settings of the grid it asks for one after
another, and is given that setting's run. What it finds to be fastest, and what an exhaustive sweep
finds to be, of all runs, are then run again by turns, so many pairs: the fastest of many runs owes
that to chance in part. *Behind* is by how much the guided sweep's choice is slower, the middle of
the pairs, with the least and the most of them; below zero it is faster, and 0 where both choose the
same. FILE is of runs that this kept; what is lacking there is run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.prediction import can_be_run
from benchmarks.prediction_lab import LAB
from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import Grid, Job, Runs, load, measure_all, save
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.sweep.search import plan
from pipeprof.units import percent

_BEHIND, _FAR_BEHIND, _FEW = 0.03, 0.08, 0.25
"""Of the bar: within the first on most pipelines, within the second on all, in so many of the
grid's trials."""
_AGAIN = 1000
"""Added to a seed, for samples of other runs."""

GRID = Grid((0, 1, 2, 3, 4, 6, 8), (1, 2, 4, 8), (0.0, 0.005))


@dataclass(frozen=True)
class Sweep:
    """Of one pipeline with one training step."""

    trials: int
    settings: int
    """Of the grid."""
    chosen: Job
    best: Job
    """The exhaustive sweep's choice."""

    def pairs(self, count: int) -> list[list[Job]]:
        """Both by turns, of other samples; none where they are the same."""
        if self.chosen == self.best:
            return []
        return [
            [replace(job, seed=job.seed + number * _AGAIN) for job in (self.chosen, self.best)]
            for number in range(1, count + 1)
        ]


def swept(runs: Mapping[Setting, Measured], cores: float) -> list[Measured]:
    """What is tried until nothing else can change the answer."""
    tried: list[Measured] = []
    while (setting := plan(list(runs), tried, cores).trial) is not None:
        tried.append(runs[setting])
    return tried


def sweep(runs: Runs, cores: float) -> Sweep:
    """``runs``: the grid's, of one pipeline with one step."""
    jobs = {job.setting: job for job in runs}
    tried = swept({job.setting: run for job, run in runs.items()}, cores)
    chosen, best = (jobs[_fastest(each).setting] for each in (tried, list(runs.values())))
    return Sweep(len(tried), len(runs), chosen, best)


def behind(one: Sweep, runs: Runs, count: int) -> list[float]:
    """By how much the choice is slower, relatively, in each pair."""
    pairs = [[runs[job].batches_per_s for job in pair] for pair in one.pairs(count)]
    return [best / chosen - 1 for chosen, best in pairs] or [0.0]


def made(runs: Runs, groups: Sequence[Sequence[Job]], seconds: float) -> Runs:
    """With those that are lacking; a group's one after another, in random order."""
    lacking = [group for group in groups if any(job not in runs for job in group)]
    return {**runs, **measure_all(lacking, 1, seconds, takes=0)}


def _fastest(runs: Sequence[Measured]) -> Measured:
    return max(runs, key=lambda run: run.batches_per_s)


def asked_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep_guided", description=__doc__)
    parser.add_argument("kept", type=Path, nargs="?", metavar="FILE", help="runs")
    parser.add_argument("--seconds", type=float, default=0.7, help="of each run")
    parser.add_argument("--seed", type=int, default=9, help="of what is random")
    parser.add_argument("--pairs", type=int, default=5, help="in which a choice is judged")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    return parser.parse_args()


def main() -> int:
    options, cores = asked_of(), len(os.sched_getaffinity(0))
    runs: Runs = load(options.kept) if options.kept else {}
    seed = min((job.seed for job in runs), default=options.seed)
    pipelines = [name for name in (*PIPELINES, *LAB) if can_be_run(name)]
    grids = [GRID.jobs(name, step_s, seed) for name, step_s in product(pipelines, GRID.steps_s)]
    runs = made(runs, grids, options.seconds)
    sweeps = [sweep({job: runs[job] for job in grid}, cores) for grid in grids]
    runs = made(runs, [pair for one in sweeps for pair in one.pairs(options.pairs)],
                options.seconds)  # fmt: skip
    if options.keep:
        save(runs, options.keep)
    print(f"{'pipeline':<15}{'step':>8}{'settings':>10}{'tried':>7}{'behind':>9}{'pairs':>18}")
    every = []
    for one in sweeps:
        pairs = behind(one, runs, options.pairs)
        middle = float(np.median(pairs))
        every.append((one.trials / one.settings, middle))
        print(
            f"{one.best.pipeline:<15}{one.best.step_s * 1e3:>5.0f} ms{one.settings:>10}"
            f"{one.trials:>7}{middle:>+9.1%}{f'{min(pairs):+.1%} to {max(pairs):+.1%}':>18}"
        )
    print_summary(every)
    return 0


def print_summary(every: Sequence[tuple[float, float]]) -> None:
    """``every``: the share of the grid that was tried, and how far behind the choice is."""
    shares, behind = (np.array(each) for each in zip(*every, strict=True))
    near, few = behind <= _BEHIND, shares <= _FEW
    well, soon, at_all = (
        percent(float(np.mean(each))) for each in (near, near & few, behind <= _FAR_BEHIND)
    )
    print(
        f"{len(every)} sweeps: {well} come within {percent(_BEHIND)} of the exhaustive best, "
        f"{soon} in at most a quarter of its trials; {at_all} within {percent(_FAR_BEHIND)}, worst "
        f"{behind.max():.1%}; tried is {percent(shares.mean())} of the grid, at most "
        f"{percent(shares.max())}"
    )


if __name__ == "__main__":
    sys.exit(main())
