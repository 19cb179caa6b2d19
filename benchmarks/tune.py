"""How good the setting is that `pipeprof.tune` finds while training runs, and what it costs.

    python -m benchmarks.tune [--loaders N] [--seconds S] [--pairs N] [--seed N] [--verbose]

Loaders are drawn at random (`benchmarks.random_loaders`): map-style, forked, with any number of
workers as the user's own setting. Each trains for epochs that take the own setting ``--seconds``.
*Whole run* is the rate of a tuned epoch, search included, as a multiple of an epoch with the own
setting. The two alternate, and the median of the pairs counts. *Again* is the control: another
epoch with the own setting in the place of the tuned one. *Behind* is how much slower the
chosen setting is than the fastest of a grid of workers and prefetching, in alternate runs of the
steady state. The plain advice, as many workers as cores, is compared in the same way. *Lost* is the
cost of the search, as `Tuning` reports it, as a share of the epoch. Seeds come from the clock;
``--seed`` repeats those of a run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.random_loader_runs import lab_kinds, rate, run, tell
from benchmarks.random_loader_work import Surroundings, loader_of, pinning, surroundings
from benchmarks.random_loaders import LoaderSpec, draw
from pipeprof.analyze.predict.workload import Setting
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import TunedSetting, Tuning
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

GRID = tuple(
    Setting(workers, prefetch)
    for workers in (0, 1, 2, 3, 4, 6) for prefetch in (2, 4)
    if workers or prefetch == 2
)  # fmt: skip
BEHIND, GOOD = 0.03, 0.85
"""The first bar: so many choices are at most so far behind the best."""
ARMS = ("own", "again", "tuned")
WORST = -0.02
"""The second bar: no whole run is slower than the own setting by more."""


@dataclass(frozen=True)
class Tuned:
    """One loader, tuned."""

    spec: LoaderSpec
    tuning: Tuning
    whole_run: tuple[float, ...]
    """Rate of a tuned epoch over that of an own one, per pair."""
    control: tuple[float, ...]
    """The same of another own epoch."""
    behind: float
    """How much slower the chosen setting is than the best."""
    best: Setting
    plain_behind: float
    """The same for as many workers as cores."""
    epoch_s: float

    @property
    def noise(self) -> float:
        return float(np.median(self.control)) - 1

    @property
    def gain(self) -> float:
        return float(np.median(self.whole_run)) - 1


class FirstBatches:
    """The first ``count`` batches of another batch sampler."""

    def __init__(self, sampler: Any, count: int) -> None:
        self._sampler, self._count = sampler, count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self._sampler), self._count)

    def __len__(self) -> int:
        return self._count


def epoch_loader(spec: LoaderSpec, around: Surroundings, turn: int, count: int) -> DataLoader[Any]:
    """The loader of ``spec``, with epochs of ``count`` batches."""
    loader = loader_of(spec, around, turn * 10**6)
    vars(loader)["batch_sampler"] = FirstBatches(loader.batch_sampler, count)
    return loader


def train(loader: Any, spec: LoaderSpec) -> float:
    """Return the seconds of one epoch."""
    accelerator = EmulatedAccelerator(spec.step_s)
    start = perf_counter()
    for batch in loader:
        accelerator.step(batch)
    return perf_counter() - start


def tune_one(spec: LoaderSpec, around: Surroundings, options: argparse.Namespace) -> Tuned:
    turns = itertools.count(1)
    own_rate = rate(run(spec, around, next(turns), 1.0))
    count = max(40, int(options.seconds * own_rate))
    ratios, controls, tuning, epoch_s = [], [], None, 0.0
    for _ in range(options.pairs):
        seconds = {}
        turn = next(turns)
        for kind in random.sample(ARMS, len(ARMS)):
            loader = epoch_loader(spec, around, turn, count)
            tuned: Any = pipeprof.tune(loader) if kind == "tuned" else loader
            with pinning(spec, around, turn * 10**6):
                seconds[kind] = train(tuned, spec)
            if kind == "tuned":
                tuning = tuned.tuning()
        ratios.append(seconds["own"] / seconds["tuned"])
        controls.append(seconds["own"] / seconds["again"])
        epoch_s = seconds["own"]
    assert tuning is not None
    rates = {each: steady(spec, each, around, next(turns), 2.0) for each in grid(spec)}
    best = max(rates, key=lambda each: rates[each])
    chosen = Setting(tuning.chosen.num_workers, tuning.chosen.prefetch_factor or 2)
    plain = Setting(len(os.sched_getaffinity(0)), 2)
    behind = [paired(spec, each, best, around, turns) for each in (chosen, plain)]
    return Tuned(spec, tuning, tuple(ratios), tuple(controls), behind[0], best, behind[1], epoch_s)


def grid(spec: LoaderSpec) -> Sequence[Setting]:
    return random.Random(spec.seed).sample(GRID, len(GRID))


def steady(
    spec: LoaderSpec, setting: Setting, around: Surroundings, turn: int, seconds: float
) -> float:
    workers, prefetch = setting.num_workers, setting.prefetch_factor
    changed = replace(spec, num_workers=workers, prefetch_factor=prefetch)
    return rate(run(changed, around, turn, seconds))


def paired(
    spec: LoaderSpec,
    one: Setting,
    best: Setting,
    around: Surroundings,
    turns: Iterator[int],
    pairs: int = 4,
) -> float:
    """Return by how much ``one`` is slower than ``best``, in the middle of alternate runs."""
    if one == best or (not one.num_workers and not best.num_workers):
        return 0.0
    found = []
    for pair in range(pairs):
        turn = next(turns)
        order = (one, best) if pair % 2 else (best, one)
        rates = {each: steady(spec, each, around, turn, 2.0) for each in order}
        found.append(rates[best] / rates[one] - 1)
    return float(np.median(found))


def drawn(options: argparse.Namespace) -> Iterator[LoaderSpec]:
    """Map-style loaders, forked, in order."""
    lab = lab_kinds()
    for number in itertools.count():
        spec = draw(options.seed * 10_000 + number, lab)
        if not spec.iterable and spec.in_order:
            yield replace(spec, start_method="fork")


def print_one(one: Tuned) -> None:
    tuning = one.tuning
    tried = ", ".join(
        f"{each.setting.num_workers}×{each.setting.prefetch_factor}"
        f" {each.ratio or 0:.2f}{' kept' if each.kept else ''}"
        for each in tuning.tried
    )
    print(
        f"{one.spec}\n    whole run {one.gain:+.1%} (again {one.noise:+.1%}); "
        f"behind {one.behind:+.1%}, plain advice {one.plain_behind:+.1%}; "
        f"{label(tuning.own)} → {label(tuning.chosen)}, best "
        f"{one.best.num_workers}×{one.best.prefetch_factor}; {tuning.state}, lost "
        f"{tuning.lost_s / one.epoch_s:.1%}; tried {tried or 'nothing'}",
        flush=True,
    )


def label(setting: TunedSetting) -> str:
    return f"{setting.num_workers}×{setting.prefetch_factor or 0}"


def print_summary(tuned: Sequence[Tuned]) -> None:
    behind = np.array([one.behind for one in tuned])
    plain = np.array([one.plain_behind for one in tuned])
    gains = np.array([one.gain for one in tuned])
    noise = np.array([one.noise for one in tuned])
    lost = np.array([one.tuning.lost_s / one.epoch_s for one in tuned])
    good, worst = float(np.mean(behind <= BEHIND)), float(gains.min())
    print(
        f"{len(tuned)} loaders: chosen within 3 % of the best {percent(good)} "
        f"[bar 85 %: {'met' if good >= GOOD else 'MISSED'}], median {np.median(behind):+.1%}, "
        f"worst {behind.max():+.1%}; as many workers as cores: within 3 % "
        f"{percent(float(np.mean(plain <= BEHIND)))}, worst {plain.max():+.1%}\n"
        f"whole run against the own setting: median {np.median(gains):+.1%}, worst {worst:+.1%} "
        f"[bar −2 %: {'met' if worst >= WORST else 'MISSED'}], best {gains.max():+.1%}; "
        f"control from {noise.min():+.1%} to {noise.max():+.1%}; "
        f"lost to searching: median {np.median(lost):.1%}, most {lost.max():.1%} of the epoch"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaders", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=30.0, help="of an epoch")
    parser.add_argument("--pairs", type=int, default=3, help="of epochs")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--verbose", action="store_true", help="each loader")
    options = parser.parse_args()
    tuned: list[Tuned] = []
    for spec in itertools.islice(drawn(options), options.loaders):
        tell(str(spec))
        with surroundings([spec]) as around, any_workers():
            tuned.append(tune_one(spec, around, options))
        if options.verbose:
            print_one(tuned[-1])
    print(f"--seed {options.seed}")
    print_summary(tuned)


if __name__ == "__main__":
    main()
