"""Measures the advice of profiles without workers, where batches have many MB: the proposed number
of workers is run, and its rate compared with the promise.

    python -m benchmarks.from_no_workers [--loaders N] [--seconds S] [--seed N]

Loaders are drawn at random (`benchmarks.random_loaders`), without workers. Their batches also have
4, 16 or 40 MB in a tensor of their own. A promise is the predicted rate, or the middle of a range.
As a control, the same runs are analysed as if shared memory cost nothing, and that advice is run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils.data import default_collate

from benchmarks import random_loader_work
from benchmarks.random_loader_runs import rate, run
from benchmarks.random_loader_surroundings import surroundings
from benchmarks.random_loaders import LoaderSpec, draw
from pipeprof.analyze.advice import more_workers, roofline_estimate
from pipeprof.analyze.assemble import assemble
from pipeprof.model import Recommendation, Recording
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

_SIZES = (4, 16, 40)
"""MB of a batch."""
_TURNS = (1, 2)
"""Runs with the proposed workers, each on other samples."""


@dataclass(frozen=True)
class Acted:
    """The number of workers that a profile proposes, and what it gave."""

    advice: Recommendation
    own: float
    """Samples/s without workers."""
    rates: tuple[float, ...]
    """Samples/s with the proposed ones."""

    @property
    def error(self) -> float | None:
        interval = self.advice.interval
        promised = self.advice.predicted_samples_per_s or (interval and sum(interval) / 2)
        return promised / float(np.mean(self.rates)) - 1 if promised else None

    @property
    def held(self) -> list[bool]:
        low, high = self.advice.interval or (0.0, 0.0)
        return [low <= each <= high for each in self.rates] if high else []

    @property
    def gain(self) -> float:
        return float(np.mean(self.rates)) / self.own - 1

    def __str__(self) -> str:
        rate, interval = self.advice.predicted_samples_per_s, self.advice.interval
        promise = f"{rate:.0f}" if rate else "no number"
        if interval:
            promise = f"{interval[0]:.0f} – {interval[1]:.0f}"
        found = ", ".join(f"{each:.0f}" for each in self.rates)
        return f"{self.advice.proposed} workers, promised {promise}, measured {found}"


def drawn(seed: int) -> Iterator[tuple[LoaderSpec, int]]:
    """Yield loaders without workers, and the MB of their batches."""
    for number in range(seed, seed + 10_000):
        spec = draw(number)
        costs = tuple(each for each in spec.costs if each.place not in ("pin", "transfer"))
        if costs:
            spec = replace(spec, costs=costs, num_workers=0, in_order=True, start_method="fork")
            yield spec, Random(number).choice(_SIZES)


@contextmanager
def larger(megabytes: int) -> Iterator[None]:
    """Add a tensor of so many MB to all batches, in processes that are forked meanwhile."""
    part, plain = torch.zeros(1 << 20, dtype=torch.uint8), random_loader_work._Collate.__call__

    def collate(self: Any, samples: list[torch.Tensor]) -> list[torch.Tensor]:
        return [*plain(self, samples), default_collate([part] * megabytes)]

    with mock.patch.object(random_loader_work._Collate, "__call__", collate):
        yield


def advice_of(recording: Recording, free_memory: bool = False) -> Recommendation | None:
    """Return the proposed number of workers, if any. ``free_memory``: as if memory cost nothing."""
    with ExitStack() as stack:
        for module in (more_workers, roofline_estimate) if free_memory else ():
            for name in ("sharing_s", "release_s"):
                free = mock.patch.object(module, name, return_value=0.0)
                stack.enter_context(free)
        found = assemble(recording).recommendations
    counts = (each for each in found if each.setting == "num_workers" and each.proposed.isdigit())
    return next((each for each in counts if int(each.proposed) > 0), None)


def acted_on(spec: LoaderSpec, megabytes: int, seconds: float) -> tuple[Acted | None, Acted | None]:
    """Return what the advice gives, and that of the control; ``None`` where there is none."""
    with surroundings([spec]) as around, larger(megabytes), any_workers():
        recording, rates = run(spec, around, 0, seconds), dict[int, tuple[float, ...]]()
        samples = float(np.mean([each or 0 for each in recording.batches.samples]))
        found: list[Acted | None] = []
        for free_memory in (False, True):
            advice = advice_of(recording, free_memory)
            if advice is None:
                found.append(None)
                continue
            workers = int(advice.proposed)
            if workers not in rates:
                more = replace(spec, num_workers=workers, prefetch_factor=2)
                runs = (run(more, around, turn, seconds) for turn in _TURNS)
                rates[workers] = tuple(rate(each) * samples for each in runs)
            found.append(Acted(advice, rate(recording) * samples, rates[workers]))
    return found[0], found[1]


def summary(name: str, every: list[Acted]) -> str:
    """Return one line on all advice of a kind."""
    if not every:
        return f"{name}: no advice"
    errors = np.array([each.error for each in every if each.error is not None])
    held = [each for acted in every for each in acted.held]
    gains = np.array([each.gain for each in every])
    return (
        f"{name}: {len(every)} loaders, promises off by {100 * np.median(errors):+.0f} % in the "
        f"middle, {100 * np.percentile(abs(errors), 90):.0f} % in one of ten; intervals hold "
        f"{percent(float(np.mean(held))) if held else 'none'} of {len(held)} runs; gains "
        f"{100 * gains.min():+.0f} to {100 * gains.max():+.0f} %, slower than before in "
        f"{(gains < 0).sum()}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.from_no_workers")
    parser.add_argument("--loaders", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each run")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    ours, control = list[Acted](), list[Acted]()
    for number, (spec, megabytes) in enumerate(drawn(options.seed), start=1):
        advised, free = acted_on(spec, megabytes, options.seconds)
        print(f"{megabytes} MB, {spec}\n    {advised or 'no workers'}; as if memory cost nothing: "
              f"{free or 'no workers'}", flush=True)  # fmt: skip
        ours += [advised] if advised else []
        control += [free] if free else []
        if number == options.loaders:
            break
    print(f"--seed {options.seed}")
    print(summary("advice", ours))
    print(summary("as if memory cost nothing", control))
    return 0


if __name__ == "__main__":
    sys.exit(main())
