"""Real runs of loaders of defined behaviour, from which predictions are computed and evaluated.

They can be saved in a file, so that another version of the model is evaluated on the same runs.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.prediction_lab import LAB
from benchmarks.prediction_pipelines import BATCH_SIZE, PIPELINES, Known
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import BatchLog

CALIBRATION = ((0, 1), (1, 1), (2, 2))
"""Pairs of workers and prefetch factor."""
TAKES = 3
"""Calibrations per bout, spread over it."""
LONGER = {"heavy-tailed": 9.0, "one in twenty": 3.0}
"""Factor on the duration of runs, where a few slow batches determine the rate."""
_FEWEST = 30
"""Fewest batches of a run, however long they take."""
_FIELDS = [field.name for field in fields(BatchLog)]


@dataclass(frozen=True)
class Job:
    """The settings of one run."""

    pipeline: str
    num_workers: int
    prefetch_factor: int
    step_s: float
    seed: int
    """Seed of the random numbers in the pipeline."""
    repeat: int = 0
    """The bout in which it is run."""

    @property
    def setting(self) -> Setting:
        return Setting(self.num_workers, self.prefetch_factor)

    @property
    def key(self) -> str:
        """Name of the run in a file."""
        step_us = round(self.step_s * 1e6)
        where = (self.num_workers, self.prefetch_factor, step_us, self.seed, self.repeat)
        return "/".join(map(str, (self.pipeline, *where)))

    @classmethod
    def of(cls, key: str) -> Job:
        pipeline, *rest = key.split("/")
        workers, prefetch, step_us, seed, repeat = map(int, rest)
        return cls(pipeline, workers, prefetch, step_us / 1e6, seed, repeat)


Runs = Mapping[Job, Measured]


@dataclass(frozen=True)
class Grid:
    """A grid of settings to be predicted."""

    workers: tuple[int, ...] = (0, 1, 2, 4, 8)
    prefetch: tuple[int, ...] = (1, 2, 4)
    steps_s: tuple[float, ...] = (0.0, 0.005, 0.020)

    def jobs(self, pipeline: str, step_s: float, seed: int) -> list[Job]:
        return [
            Job(pipeline, workers, prefetch, step_s, seed)
            for workers, prefetch in product(self.workers, self.prefetch)
            if workers or prefetch == self.prefetch[0]
        ]

    def groups(self, pipelines: Sequence[str], seeds: Sequence[int]) -> list[list[Job]]:
        """Return groups of jobs that are predicted from the same calibrations."""
        each = product(pipelines, self.steps_s, seeds)
        return [self.jobs(pipeline, step_s, seed) for pipeline, step_s, seed in each]


QUICK = Grid((0, 1, 2, 4), (2,), (0.0, 0.010))


def calibration_jobs(pipeline: str, step_s: float, seed: int, take: int = 0) -> list[Job]:
    """Return runs with the training step of the cells with that seed. Their samples differ from
    those of the cells and of other takes."""
    return [Job(pipeline, *setting, step_s, -1 - seed - 100 * take) for setting in CALIBRATION]


def place(pipeline: str) -> AbstractContextManager[object]:
    """Return a context in which the pipeline can be run."""
    return LAB[pipeline][1]() if pipeline in LAB else nullcontext()


def _work(pipeline: str) -> Callable[[random.Random, int], Any]:
    return LAB[pipeline][0] if pipeline in LAB else PIPELINES[pipeline]


def run(job: Job, seconds: float) -> Any:
    """Iterate a real loader for ``seconds``, and return what `pipeprof.wrap` returned for it."""
    loader = DataLoader(
        Known(_work(job.pipeline), 100 * job.seed + job.repeat),
        batch_size=BATCH_SIZE,
        num_workers=job.num_workers,
        prefetch_factor=job.prefetch_factor if job.num_workers else None,
    )
    profiled = pipeprof.wrap(loader, job.pipeline, whole=True)
    accelerator = EmulatedAccelerator(job.step_s)
    warmup = job.setting.warmup
    start = perf_counter()
    for count, batch in enumerate(profiled, start=1):
        accelerator.step(batch)
        if count == warmup:
            start = perf_counter()
        if count >= warmup + _FEWEST and perf_counter() - start > seconds:
            break
    return profiled


def measure(job: Job, seconds: float) -> Measured:
    """Run the job, and return the run without its warm-up batches."""
    columns = Columns.of(run(job, seconds).recording().batches)
    return Measured(job.setting, columns.take(np.arange(len(columns)) >= job.setting.warmup))


def bout(cells: Sequence[Job], chance: random.Random, takes: int = TAKES) -> list[Job]:
    """Return the cells of one pipeline, step and seed in random order, between ``takes``
    calibrations. A cell and its calibration are seconds apart, so that a machine that is slower for
    a while is slower for both."""
    first, order = cells[0], chance.sample(cells, len(cells))
    if not takes:
        return order
    jobs: list[Job] = []
    for take in range(takes):
        jobs += calibration_jobs(first.pipeline, first.step_s, first.seed, take)
        jobs += order[take::takes]
    return jobs


def longer(job: Job) -> float:
    """Return the factor on the duration of this run and its calibrations. These must be as long as
    the run, since they estimate how much runs of that duration differ."""
    return LONGER.get(job.pipeline, 1.0)


def tell(job: Job, run: Measured) -> None:
    """Print the progress of the runs."""
    print(f"  {job.key}: {run.batches_per_s:.1f} batches/s", file=sys.stderr, flush=True)


def measure_all(
    groups: Sequence[Sequence[Job]],
    repeats: int,
    seconds: float,
    takes: int = TAKES,
) -> dict[Job, Measured]:
    """Run ``repeats`` bouts of each group, which has one pipeline, step and seed."""
    runs, chance = {}, random.Random(0)
    for repeat in range(repeats):
        for cells in chance.sample(groups, len(groups)):
            with place(cells[0].pipeline):
                for job in bout(cells, chance, takes):
                    again = replace(job, repeat=repeat)
                    runs[again] = measure(again, seconds * longer(job))
                    tell(again, runs[again])
    return runs


def save(runs: Runs, path: Path) -> None:
    """Write each run as an array of shape (fields, batches)."""
    arrays = {
        job.key: np.stack([getattr(run.columns, name) for name in _FIELDS])
        for job, run in runs.items()
    }
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def load(path: Path) -> dict[Job, Measured]:
    with np.load(path) as arrays:
        jobs = {key: Job.of(key) for key in arrays.files}
        return {
            job: Measured(job.setting, Columns(dict(zip(_FIELDS, arrays[key], strict=True))))
            for key, job in jobs.items()
        }
