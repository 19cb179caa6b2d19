"""How good the answer of a model-guided sweep is, and how many settings of its grid it had to try.

    python -m benchmarks.sweep_guided [--seconds S] [--seeds 9,10] [--keep FILE]
    python -m benchmarks.sweep_guided FILE…

Without files it makes the runs: 25 settings of each pipeline with two training steps, in two bouts.
Files are runs that this kept, or `benchmarks.prediction`. A sweep is of one pipeline with one
training step: of the settings of the grid it asks for one after another, and is given that
setting's run of one bout. What it finds to be fastest, and what an exhaustive sweep finds to be, of
all runs of that bout, are both judged by their runs of another bout: the fastest of many runs of
the same bout owes that to chance in part. *Behind* is by how much the guided sweep's choice is
slower there, the middle of all pairs of bouts; below zero it is faster.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from benchmarks.prediction import can_be_run
from benchmarks.prediction_lab import LAB
from benchmarks.prediction_pipelines import PIPELINES
from benchmarks.prediction_runs import Grid, Runs, load, measure_all, save
from pipeprof.analyze.demand import Setting
from pipeprof.analyze.guide import plan
from pipeprof.analyze.way import Measured
from pipeprof.units import percent

_BEHIND, _FAR_BEHIND, _FEW = 0.03, 0.08, 0.25
"""Of the bar: within the first on most pipelines, within the second on all, in so many of the
grid's trials."""

GRID = Grid((0, 1, 2, 3, 4, 6, 8), (1, 2, 4, 8), (0.0, 0.005))

Bout = Mapping[Setting, Measured]
"""The run of each setting."""


@dataclass(frozen=True)
class Sweep:
    """Of one bout."""

    trials: int
    settings: int
    """Of the grid."""
    behind: float
    """The exhaustive sweep's choice, relatively, in another bout."""


def made(seconds: float, seeds: Sequence[int]) -> Runs:
    """Of `GRID`, of all pipelines that can be run here."""
    pipelines = [name for name in (*PIPELINES, *LAB) if can_be_run(name)]
    return measure_all(GRID.groups(pipelines, seeds), 1, seconds, takes=0)


def swept(runs: Bout, cores: float) -> list[Measured]:
    """What is tried until nothing else can change the answer."""
    tried: list[Measured] = []
    while (setting := plan(list(runs), tried, cores).trial) is not None:
        tried.append(runs[setting])
    return tried


def judged(tried: Sequence[Measured], runs: Bout, others: Bout) -> Sweep:
    """``tried``: of ``runs``, as `swept` chose."""
    chosen, best = (others[_fastest(each).setting] for each in (tried, list(runs.values())))
    return Sweep(len(tried), len(runs), best.batches_per_s / chosen.batches_per_s - 1)


def _fastest(runs: Sequence[Measured]) -> Measured:
    return max(runs, key=lambda run: run.batches_per_s)


def bouts_of(runs: Runs, pipeline: str, step_s: float) -> list[Bout]:
    """Of its cells, with no more than the calibrations that are among them."""
    by_bout: dict[tuple[int, int], dict[Setting, Measured]] = {}
    for job, run in runs.items():
        if (job.pipeline, job.step_s) == (pipeline, step_s) and job.seed > 0:
            by_bout.setdefault((job.seed, job.repeat), {})[job.setting] = run
    return list(by_bout.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep_guided", description=__doc__)
    parser.add_argument("kept", type=Path, nargs="*", help="runs")
    parser.add_argument("--seconds", type=float, default=0.7, help="of each run")
    parser.add_argument("--seeds", default="9,10", help="of what is random: a bout each")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    options = parser.parse_args()
    runs: Runs = {job: run for path in options.kept for job, run in load(path).items()}
    if not options.kept:
        runs = made(options.seconds, [int(seed) for seed in options.seeds.split(",")])
    if options.keep:
        save(runs, options.keep)
    cores = len(os.sched_getaffinity(0))
    print(f"{'pipeline':<15}{'step':>8}{'settings':>10}{'tried':>10}{'behind':>9}")
    every = []
    for pipeline, step_s in sorted({(job.pipeline, job.step_s) for job in runs}):
        bouts = bouts_of(runs, pipeline, step_s)
        guided = [(swept(bout, cores), bout) for bout in bouts if len(bouts) > 1]
        sweeps = [judged(*one, other) for one, (_, other) in permutations(guided, 2)]
        if not sweeps:
            print(f"{pipeline:<15}{step_s * 1e3:>5.0f} ms: one bout, nothing to judge it by")
            continue
        tried = float(np.mean([sweep.trials for sweep in sweeps]))
        behind, settings = float(np.median([sweep.behind for sweep in sweeps])), sweeps[0].settings
        every.append((tried / settings, behind))
        print(f"{pipeline:<15}{step_s * 1e3:>5.0f} ms{settings:>10}{tried:>10.1f}{behind:>+9.1%}")
    if every:
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
