"""Measures how good the answer of a model-guided sweep is, and the share of its grid that it tries.

    python -m benchmarks.sweep_guided [--seconds S] [--seed N] [--pairs N] [--keep FILE]
    python -m benchmarks.sweep_guided FILE

Without a file it first runs 25 settings of each pipeline with two training steps, in random order.
A sweep is of one pipeline with one step. It requests one setting of the grid after another, and
receives that setting's run. Its choice and that of an exhaustive sweep are then run again
alternately, for ``--pairs`` pairs: the fastest of many runs is so partly by chance. *Behind* is how
much slower the guided sweep's choice is: the median of the pairs, with the least and the most of
them. It is below zero where that choice is faster, and 0 where both choices are the same. FILE has
runs that ``--keep`` wrote; missing ones are run.
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
"""Bars: how far the choice may be behind on most pipelines, and on all; and the share of the grid's
trials."""
_AGAIN = 1000
"""Added to a seed, so that a run has other samples."""

GRID = Grid((0, 1, 2, 3, 4, 6, 8), (1, 2, 4, 8), (0.0, 0.005))


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep of one pipeline with one training step."""

    trials: int
    settings: int
    """Number of settings in the grid."""
    chosen: Job
    best: Job
    """The exhaustive sweep's choice."""

    def pairs(self, count: int) -> list[list[Job]]:
        """Return alternating runs of both choices on other samples; none if they are the same."""
        if self.chosen == self.best:
            return []
        return [
            [replace(job, seed=job.seed + number * _AGAIN) for job in (self.chosen, self.best)]
            for number in range(1, count + 1)
        ]


def swept(runs: Mapping[Setting, Measured], cores: float) -> list[Measured]:
    """Return what the sweep tries until no other trial can change the answer."""
    tried: list[Measured] = []
    while (setting := plan(list(runs), tried, cores).trial) is not None:
        tried.append(runs[setting])
    return tried


def sweep(runs: Runs, cores: float) -> Sweep:
    """Return the result of a sweep. ``runs``: those of the grid, of one pipeline with one step."""
    jobs = {job.setting: job for job in runs}
    tried = swept({job.setting: run for job, run in runs.items()}, cores)
    chosen, best = (jobs[_fastest(each).setting] for each in (tried, list(runs.values())))
    return Sweep(len(tried), len(runs), chosen, best)


def behind(one: Sweep, runs: Runs, count: int) -> list[float]:
    """Return by how much the best is faster than the choice, relatively, in each pair."""
    pairs = [[runs[job].batches_per_s for job in pair] for pair in one.pairs(count)]
    return [best / chosen - 1 for chosen, best in pairs] or [0.0]


def made(runs: Runs, groups: Sequence[Sequence[Job]], seconds: float) -> Runs:
    """Return ``runs`` with the missing ones, which are run group by group, in random order."""
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
    """Print the summary. ``every``: share of the grid tried, and how far the choice is behind."""
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
