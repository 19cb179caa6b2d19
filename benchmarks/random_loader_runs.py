"""Real, profiled runs of loaders drawn at random. They can be kept in a file, so that another
analysis is tried on the very same runs."""

from __future__ import annotations

import gzip
import pickle
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import pipeprof
from benchmarks.core_use import DISTURBING
from benchmarks.prediction import can_be_run
from benchmarks.random_loader_work import Surroundings, loader_of, pinning
from benchmarks.random_loaders import Kind, LoaderSpec
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import Recording
from pipeprof.units import percent

FEWEST = 40
"""Batches of a run, whatever the time."""
_TURN = 10**6
"""Batches of one turn have no numbers of another's: they are other samples."""


def lab_kinds() -> tuple[Kind, ...]:
    """Those of the kinds that need root which can be run here; others are said to be left out."""
    names: dict[Kind, str] = {"disk": "throttled disk", "link": "shaped link"}
    return tuple(kind for kind, name in names.items() if can_be_run(name))


def rate(recording: Recording) -> float:
    """Batches/s of the steady part."""
    return steady_part(recording).batches_per_s


def starved(recording: Recording) -> float:
    """The share of the steady part in which the training waited for a batch."""
    run = steady_part(recording)
    return float(run.columns.wait_s.sum()) / run.seconds


def steady_part(recording: Recording) -> Measured:
    config, columns = recording.config, Columns.of(recording.batches)
    setting = Setting(config.num_workers, config.prefetch_factor or 2)
    return Measured(setting, columns.take(np.arange(len(columns)) >= setting.warmup))


def run(
    spec: LoaderSpec, around: Surroundings, turn: int, seconds: float = 0.0, batches: int = FEWEST
) -> Recording:
    """At least so long, and so many batches, after those that warm it up."""
    first = turn * _TURN
    loader = pipeprof.wrap(loader_of(spec, around, first), str(spec.seed), whole=True)
    accelerator = EmulatedAccelerator(spec.step_s)
    warmup = Setting(spec.num_workers, spec.prefetch_factor).warmup
    start = perf_counter()
    with pinning(spec, around, first):
        for count, batch in enumerate(loader, start=1):
            accelerator.step(batch)
            if count == warmup:
                start = perf_counter()
            if count >= warmup + batches and perf_counter() - start > seconds:
                break
    return loader.recording()


def keep(tried: object, path: Path) -> None:
    """Behind what is in the file, so that little is lost with a crash."""
    with gzip.open(path, "ab", compresslevel=4) as file:
        pickle.dump(tried, file)


def load(paths: Sequence[Path]) -> Iterator[Any]:
    """All of the files."""
    for path in paths:
        with gzip.open(path) as file:
            while file.peek(1):
                yield pickle.load(file)


def tell(what: str) -> None:
    """How far it is."""
    print(f"  {what}", file=sys.stderr, flush=True)


def say_if_busy(others: Sequence[float | None]) -> None:
    """``others``: of each loader, 0..1 of all cores that other processes had while it ran."""
    known = [share for share in others if share is not None]
    busy = float(np.median(known)) if known else 0.0
    if busy > DISTURBING:
        print(f"NOT SETTLED: other processes had {percent(busy)} of the cores meanwhile")
