"""Real runs of loaders whose mechanics are known: what predictions are made from, and held against.

They can be kept in a file, so that another form of the model is tried on the very same runs.
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
"""Workers, and batches for each to prefetch."""
TAKES = 3
"""Calibrations of a bout, spread over it."""
LONGER = {"heavy-tailed": 9.0, "one in twenty": 3.0}
"""Times as long must runs be for their rate to be one, where a few slow batches make it."""
_FEWEST = 30
"""Batches of a run, whatever the time."""
_FIELDS = [field.name for field in fields(BatchLog)]


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    pipeline: str
    num_workers: int
    prefetch_factor: int
    step_s: float
    seed: int
    """Of what is random in the pipeline."""
    repeat: int = 0
    """The bout in which it is run."""

    @property
    def setting(self) -> Setting:
        return Setting(self.num_workers, self.prefetch_factor)

    @property
    def key(self) -> str:
        """By which it is known in a file."""
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
    """Settings to be predicted."""

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
        """Those that are predicted from the same calibrations."""
        each = product(pipelines, self.steps_s, seeds)
        return [self.jobs(pipeline, step_s, seed) for pipeline, step_s, seed in each]


QUICK = Grid((0, 1, 2, 4), (2,), (0.0, 0.010))


def calibration_jobs(pipeline: str, step_s: float, seed: int, take: int = 0) -> list[Job]:
    """With the same training step as the cells with that seed, of other samples than theirs, and of
    other takes."""
    return [Job(pipeline, *setting, step_s, -1 - seed - 100 * take) for setting in CALIBRATION]


def place(pipeline: str) -> AbstractContextManager[object]:
    """Where it can be run."""
    return LAB[pipeline][1]() if pipeline in LAB else nullcontext()


def _work(pipeline: str) -> Callable[[random.Random, int], Any]:
    return LAB[pipeline][0] if pipeline in LAB else PIPELINES[pipeline]


def run(job: Job, seconds: float) -> Any:
    """A real loader, iterated so long: as `pipeprof.wrap` gave it."""
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
    """A run, without its first batches."""
    columns = Columns.of(run(job, seconds).recording().batches)
    return Measured(job.setting, columns.take(np.arange(len(columns)) >= job.setting.warmup))


def bout(cells: Sequence[Job], chance: random.Random, takes: int = TAKES) -> list[Job]:
    """Cells of one pipeline, step and seed, in random order, with so many calibrations among them:
    what they are predicted from lies seconds away, so that a machine which is slower for a while is
    so for both."""
    first, order = cells[0], chance.sample(cells, len(cells))
    if not takes:
        return order
    jobs: list[Job] = []
    for take in range(takes):
        jobs += calibration_jobs(first.pipeline, first.step_s, first.seed, take)
        jobs += order[take::takes]
    return jobs


def longer(job: Job) -> float:
    """Times as long as others is its run, and each calibration of it: an interval is of a run as
    long, and by what runs of one setting differ these tell."""
    return LONGER.get(job.pipeline, 1.0)


def tell(job: Job, run: Measured) -> None:
    """How far the runs are."""
    print(f"  {job.key}: {run.batches_per_s:.1f} batches/s", file=sys.stderr, flush=True)


def measure_all(
    groups: Sequence[Sequence[Job]],
    repeats: int,
    seconds: float,
    takes: int = TAKES,
) -> dict[Job, Measured]:
    """Of each group, which is of one pipeline, step and seed, so many bouts."""
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
    """Each run as [fields, batches]."""
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
