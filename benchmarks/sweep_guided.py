"""How good the answer of a model-guided sweep is, and how many settings of its grid it had to try.

    python -m benchmarks.prediction --keep runs.npz
    python -m benchmarks.sweep_guided runs.npz…

A sweep is of one pipeline with one training step: of the settings of the grid it asks for one after
another, and is given that setting's run of one bout. What it finds to be fastest, and what an
exhaustive sweep finds to be, of all runs of that bout, are both judged by their runs of another
bout: the fastest of many runs of the same bout owes that to chance in part. *Behind* is by how much
the guided sweep's choice is slower there, the middle of all pairs of bouts; below zero it is
faster.
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

from benchmarks.prediction_runs import Runs, load
from pipeprof.analyze.demand import Setting
from pipeprof.analyze.guide import plan
from pipeprof.analyze.way import Measured
from pipeprof.units import percent

_BEHIND, _FAR_BEHIND, _FEW = 0.03, 0.08, 0.25
"""Of the bar: within the first on most pipelines, within the second on all, in so many of the
grid's trials."""

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


def swept(runs: Bout, cores: float) -> list[Measured]:
    """What is tried until nothing else can change the answer."""
    tried: list[Measured] = []
    while (setting := plan(list(runs), tried, cores).trial) is not None:
        tried.append(runs[setting])
    return tried


def judged(runs: Bout, others: Bout, cores: float) -> Sweep:
    tried = swept(runs, cores)
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
    parser.add_argument("kept", type=Path, nargs="+", help="runs, as benchmarks.prediction keeps")
    kept: list[Path] = parser.parse_args().kept
    runs = {job: run for path in kept for job, run in load(path).items()}
    cores = len(os.sched_getaffinity(0))
    print(f"{'pipeline':<15}{'step':>8}{'settings':>10}{'tried':>10}{'behind':>9}")
    every = []
    for pipeline, step_s in sorted({(job.pipeline, job.step_s) for job in runs}):
        sweeps = [
            judged(one, other, cores)
            for one, other in permutations(bouts_of(runs, pipeline, step_s), 2)
        ]
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
