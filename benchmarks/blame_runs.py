"""Runs of loaders drawn at random, whole and with some of their costs cut, in turns; kept in a
file, so that another analysis is tried on the very same runs."""

from __future__ import annotations

import gzip
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

import pipeprof
from benchmarks.random_loader_work import Surroundings, loader_of, pinning, surroundings
from benchmarks.random_loaders import Cost, LoaderSpec
from pipeprof.analyze.columns import Columns
from pipeprof.analyze.demand import Setting
from pipeprof.analyze.way import Measured
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import Recording
from pipeprof.sweep.trial import any_workers

CHEAPER = 0.75
"""Of a cost, what a cut leaves."""
_FEWEST = 40
"""Batches of a run, whatever the time."""
_STEADY, _MOST = 0.015, 2
"""Where gains are known worse than that, there are up to so many times as many turns."""
_TURN = 10**6
"""Batches of one turn have no numbers of another's: they are other samples."""

Cut = tuple[Cost, ...]
"""The costs that are cut together."""


@dataclass(frozen=True)
class Turn:
    """Runs one after another, each over the same batches but for what was cut."""

    base: Recording
    cuts: dict[Cut, Recording]

    def gain(self, cut: Cut) -> float:
        """By what factor the cut makes it faster."""
        return rate(self.cuts[cut]) / rate(self.base)


@dataclass(frozen=True)
class Tried:
    """One loader's runs."""

    spec: LoaderSpec
    turns: tuple[Turn, ...]


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


def cuts_of(spec: LoaderSpec) -> dict[str, Cut]:
    """Cause → what is cut to find out what it is worth: all costs that belong to it."""
    return {cause: spec.costs_of(cause) for cause in spec.causes}


def try_out(spec: LoaderSpec, turns: int, seconds: float, threshold: float) -> Tried | None:
    """``None``: it is not starved by so much. Each run takes about so many seconds. Where gains
    differ much from turn to turn, there are more turns."""
    cuts = list(dict.fromkeys(cuts_of(spec).values()))
    found: list[Turn] = []
    with surroundings([spec]) as around, any_workers():
        first = run(spec, around, 0, seconds / 2)
        if starved(first) < threshold:
            return None
        # as many batches in each run, so that a cut one has the same
        batches = max(_FEWEST, round(rate(first) * seconds))
        while len(found) < turns or (len(found) < _MOST * turns and _is_unsteady(found)):
            turn = len(found) + 1
            base = run(spec, around, turn, batches=batches)
            # backwards in every other turn: a drift of the machine befalls each cut alike
            order = cuts if turn % 2 else cuts[::-1]
            made = {cut: run(spec.cut(cut, CHEAPER), around, turn, batches=batches)
                    for cut in order}  # fmt: skip
            found.append(Turn(base, made))
    return Tried(spec, tuple(found))


def _is_unsteady(turns: Sequence[Turn]) -> bool:
    return standard_error([[turn.gain(cut) for turn in turns] for cut in turns[0].cuts]) > _STEADY


def standard_error(gains: Sequence[Sequence[float]]) -> float:
    """Of a cut's mean gain, as a share of the throughput. ``gains``: by cut and turn, all of one
    loader, whose cuts are taken to vary alike; NaN with one turn."""
    logs = np.log(np.array(gains))
    cuts, turns = logs.shape
    freedom = cuts * (turns - 1)
    if not freedom:
        return float("nan")
    squares = float(((logs - logs.mean(axis=1, keepdims=True)) ** 2).sum())
    return float(np.sqrt(squares / freedom / turns))


def run(
    spec: LoaderSpec, around: Surroundings, turn: int, seconds: float = 0.0, batches: int = _FEWEST
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


def keep(tried: Tried, path: Path) -> None:
    """Behind what is in the file, so that little is lost with a crash."""
    with gzip.open(path, "ab", compresslevel=4) as file:
        pickle.dump(tried, file)


def load(paths: Sequence[Path]) -> Iterator[Tried]:
    """All of the files."""
    for path in paths:
        with gzip.open(path) as file:
            while file.peek(1):
                yield pickle.load(file)


def tell(what: str) -> None:
    """How far it is."""
    print(f"  {what}", file=sys.stderr, flush=True)
