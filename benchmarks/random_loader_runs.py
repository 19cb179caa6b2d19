"""Real, profiled runs of loaders drawn at random. They can be saved in a file, so that another
version of the analysis is evaluated on the same runs."""

from __future__ import annotations

import gzip
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import pipeprof
from benchmarks.core_use import DISTURBING
from benchmarks.prediction import can_be_run
from benchmarks.random_loader_surroundings import Surroundings
from benchmarks.random_loader_work import loader_of, pinning, use_credit
from benchmarks.random_loaders import LAB, Kind, LoaderSpec
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import Recording
from pipeprof.units import percent

FEWEST = 40
"""Fewest batches of a run, however long they take."""
_LAB_WARMUP_S = 0.5
"""Seconds until a throttled disk and a shaped link serve their reader steadily."""
_TURN = 10**6
"""Numbers of batches that are reserved for each turn, so that turns have different samples."""


def lab_kinds() -> tuple[Kind, ...]:
    """Return the kinds that need root and can be run here. Others are reported as left out."""
    names: dict[Kind, str] = {"disk": "throttled disk", "link": "shaped link"}
    return tuple(kind for kind, name in names.items() if can_be_run(name))


def rate(recording: Recording) -> float:
    """Return batches/s of the steady part."""
    return steady_part(recording).batches_per_s


def starved(recording: Recording) -> float:
    """Return the share of the steady part in which the training waited for a batch."""
    run = steady_part(recording)
    return float(run.columns.wait_s.sum()) / run.seconds


def steady_part(recording: Recording) -> Measured:
    config, columns = recording.config, Columns.of(recording.batches)
    setting = Setting(config.num_workers, config.prefetch_factor or 2)
    measured = np.arange(len(columns)) >= recording.warmup_batches
    return Measured(setting, columns.take(measured))


def run(
    spec: LoaderSpec, around: Surroundings, turn: int, seconds: float = 0.0, batches: int = FEWEST
) -> Recording:
    """Run for at least ``seconds`` and ``batches``, after the warm-up."""
    loader = pipeprof.wrap(loader_of(spec, around, turn * _TURN), str(spec.seed), whole=True)
    warmup, _, _ = _train(loader, spec, around, turn, seconds, batches)
    return replace(loader.recording(), warmup_batches=warmup)


def plain_rate(spec: LoaderSpec, around: Surroundings, turn: int, seconds: float) -> float:
    """Return batches/s of such a run, with no profiler."""
    loader = loader_of(spec, around, turn * _TURN)
    _, batches, took_s = _train(loader, spec, around, turn, seconds, FEWEST)
    return batches / took_s


def _train(
    loader: Any, spec: LoaderSpec, around: Surroundings, turn: int, seconds: float, batches: int
) -> tuple[int, int, float]:
    """Return the batches of the warm-up, and those after it with the seconds that they took."""
    accelerator = EmulatedAccelerator(spec.step_s)
    warmup_s = _LAB_WARMUP_S if any(cost.kind in LAB for cost in spec.costs) else 0.0
    fewest = max(1, Setting(spec.num_workers, spec.prefetch_factor).warmup)
    use_credit(spec, around)
    warmup, count, took_s, start = 0, 0, 0.0, perf_counter()
    with pinning(spec, around, turn * _TURN):
        for count, batch in enumerate(loader, start=1):
            accelerator.step(batch)
            took_s = perf_counter() - start
            if not warmup:
                if count >= fewest and took_s >= warmup_s:
                    warmup, start = count, perf_counter()
            elif count >= warmup + batches and took_s > seconds:
                break
    return warmup, count - warmup, took_s


def keep(tried: object, path: Path) -> None:
    """Append to the file, so that little is lost in a crash."""
    with gzip.open(path, "ab", compresslevel=4) as file:
        pickle.dump(tried, file)


def load(paths: Sequence[Path]) -> Iterator[Any]:
    """Yield all that was saved in the files."""
    for path in paths:
        with gzip.open(path) as file:
            while file.peek(1):
                yield pickle.load(file)


def tell(what: str) -> None:
    """Print the progress."""
    print(f"  {what}", file=sys.stderr, flush=True)


def say_if_busy(others: Sequence[float | None]) -> None:
    """Warn if other processes were busy. ``others``: the share of cores they used, per loader."""
    known = [share for share in others if share is not None]
    busy = float(np.median(known)) if known else 0.0
    if busy > DISTURBING:
        print(f"NOT SETTLED: other processes had {percent(busy)} of the cores meanwhile")
