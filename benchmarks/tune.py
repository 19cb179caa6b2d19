"""How good the setting is that `pipeprof.tune` finds while training runs, and what it costs.

    python -m benchmarks.tune [--loaders N] [--seconds S] [--seed N] [--verbose]

Loaders are drawn at random (`benchmarks.random_loaders`): map-style, forked, with any number of
workers as the user's own setting. Each trains an epoch that takes the own setting ``--seconds``.
*Whole run* is the rate of that epoch tuned, search included, as a multiple of the same epoch with
the own setting. Both run in turns of a few seconds (`tune_in_turns`), so that a machine that is
slower for a while slows down both. Where the search has not ended by then, further epochs follow.
A loader is below its own setting if its whole interval is; the interval is of 99 %, as there are
many loaders. *Behind* is how much slower the chosen setting is than the fastest of a grid of
workers and prefetching, in alternate runs of the steady state without a profiler, pinned as the
chosen setting is. They are repeated until the interval of 95 % lies on one side of 3 %, or a dozen
times. The grid has no setting without workers, unless the own one has none: tuning never lets a
data set run in the training process. How much faster that would be is printed. The own setting, and
the plain advice of as many workers as cores, are compared in the same way. *Control* is the best
setting against itself: more than 3 % behind, it is by the machine alone. *Lost* is the cost of the
search, as `Tuning` reports it, as a share of the epoch. Seeds come from the clock; ``--seed``
repeats those of a run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.random_loader_runs import lab_kinds, plain_rate, tell
from benchmarks.random_loader_surroundings import Surroundings, surroundings
from benchmarks.random_loader_work import loader_of, pinning
from benchmarks.random_loaders import LoaderSpec, draw
from benchmarks.steady_settings import (
    BEHIND,
    NO_WORKERS,
    compared,
    grid,
    interval_of,
    is_within,
    middle,
    paired,
    steady,
)
from benchmarks.tune_in_turns import in_turns
from pipeprof.analyze.predict.workload import Setting
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import TunedSetting, Tuning
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

GOOD = 0.85
"""The first bar: so many choices are at most `BEHIND` the best."""
WORST = -0.02
"""The second bar: no whole run is slower than the own setting by more."""


@dataclass(frozen=True)
class Tuned:
    """One loader, tuned."""

    spec: LoaderSpec
    tuning: Tuning
    gains: tuple[float, ...]
    """Log of the rate of a turn of the tuned epoch over that of the own one beside it."""
    behinds: tuple[float, ...]
    """How much slower the chosen setting is than the best, as log ratios of pairs of runs."""
    best: Setting
    own_behind: float
    plain_behind: float
    """The same for the own setting, and for as many workers as cores."""
    control: float
    """The same for the best setting, run again."""
    epoch_s: float
    inline: float
    """How much faster no workers are than ``best``."""

    @property
    def gain(self) -> float:
        return float(np.exp(np.mean(self.gains))) - 1

    @property
    def interval(self) -> tuple[float, float]:
        """99 % of ``gain``."""
        return interval_of(self.gains)

    @property
    def behind(self) -> float:
        """The middle of ``behinds``, as a ratio less 1."""
        return middle(self.behinds)

    @property
    def is_good(self) -> bool | None:
        """Whether the chosen setting is as fast as the best, by the interval of 95 %. ``None``: the
        runs differ too much to tell."""
        return is_within(self.behinds)

    @property
    def changed(self) -> bool:
        """Whether another setting than the user's own was kept."""
        return self.tuning.chosen != self.tuning.own


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


def tune_one(spec: LoaderSpec, around: Surroundings, options: argparse.Namespace) -> Tuned:
    turns = itertools.count(1)
    own_rate = plain_rate(spec, around, next(turns), 1.0)
    count = max(40, int(options.seconds * own_rate))
    turn = next(turns)
    tuned: Any = pipeprof.tune(epoch_loader(spec, around, turn, count))
    plainly: Any = epoch_loader(spec, around, turn, count)
    with pinning(spec, around, turn * 10**6):
        gains, epoch_s = in_turns(tuned, plainly, EmulatedAccelerator(spec.step_s))
        finish_search(tuned, EmulatedAccelerator(spec.step_s), options.seconds)
    tuning = tuned.tuning()
    if not tuning.chosen.pin_memory:
        spec = replace(spec, costs=tuple(each for each in spec.costs if each.place != "pin"))
    rates = {each: steady(spec, each, around, next(turns), 2.0) for each in grid(spec)}
    inline = rates.get(NO_WORKERS) or steady(spec, NO_WORKERS, around, next(turns), 2.0)
    best = max(rates, key=lambda each: rates[each])
    chosen = Setting(tuning.chosen.num_workers, tuning.chosen.prefetch_factor or 2)
    own = Setting(spec.num_workers, spec.prefetch_factor)
    plain = Setting(len(os.sched_getaffinity(0)), 2)
    behind = {
        each: paired(spec, each, best, around, turns, decide=each == chosen)
        for each in dict.fromkeys((chosen, own, plain))
    }
    return Tuned(
        spec, tuning, gains, behind[chosen], best, middle(behind[own]), middle(behind[plain]),
        middle(compared(spec, best, best, around, turns)), epoch_s, inline / rates[best] - 1,
    )  # fmt: skip


def finish_search(tuned: Any, accelerator: EmulatedAccelerator, seconds: float) -> None:
    """Train further epochs for so long, if the search has not ended. An epoch that becomes ten
    times as fast may end before that."""
    end_s = time.perf_counter() + seconds
    while tuned.tuning().state == "searching" and time.perf_counter() < end_s:
        for batch in tuned:
            accelerator.step(batch)


def drawn(options: argparse.Namespace) -> Iterator[LoaderSpec]:
    """Map-style loaders, forked, in order."""
    lab = lab_kinds()
    for number in itertools.count():
        spec = draw(options.seed * 10_000 + number, lab)
        if not spec.iterable and spec.in_order:
            yield replace(spec, start_method="fork")


_SURE: dict[bool | None, str] = {
    True: " (within 3 % for certain)",
    False: " (more for certain)",
    None: " (undecided)",
}


def print_one(one: Tuned) -> None:
    tuning = one.tuning
    tried = ", ".join(
        f"{label(each.setting)} {each.ratio or 0:.2f}{' kept' if each.kept else ''}"
        for each in tuning.tried
    )
    print(
        f"{one.spec}\n    whole run {one.gain:+.1%} ({one.interval[0]:+.1%} to "
        f"{one.interval[1]:+.1%}, {len(one.gains)} turns); "
        f"behind {one.behind:+.1%}{_SURE[one.is_good]}, own {one.own_behind:+.1%}, "
        f"plain {one.plain_behind:+.1%}, "
        f"control {one.control:+.1%}; "
        f"{label(tuning.own)} → {label(tuning.chosen)}, best "
        f"{one.best.num_workers}×{one.best.prefetch_factor}; {tuning.state}, lost "
        f"{tuning.lost_s / one.epoch_s:.1%}; tried {tried or 'nothing'}; no workers "
        f"{one.inline:+.1%}{' and says so' if says_inline(one) else ''}",
        flush=True,
    )


def says_inline(one: Tuned) -> bool:
    return any("num_workers=0" in note for note in one.tuning.notes)


def label(setting: TunedSetting) -> str:
    pinned = " pinned" if setting.pin_memory else ""
    return f"{setting.num_workers}×{setting.prefetch_factor or 0}{pinned}"


def print_summary(tuned: Sequence[Tuned]) -> None:
    good = {
        name: float(np.mean([getattr(one, name) <= BEHIND for one in tuned]))
        for name in ("behind", "own_behind", "plain_behind", "control")
    }
    behind = np.array([one.behind for one in tuned])
    gains = np.array([one.gain for one in tuned])
    intervals = [one.interval for one in tuned]
    kept = [gain for one in tuned if not one.changed for gain in one.gains]
    below = sum(high < WORST for _, high in intervals)
    above = sum(low >= WORST for low, _ in intervals)
    verdict = "MISSED" if below else "met" if above == len(tuned) else "not judged of all"
    lost = np.array([one.tuning.lost_s / one.epoch_s for one in tuned])
    certain = [one.is_good for one in tuned]
    print(
        f"{len(tuned)} loaders: chosen within 3 % of the best {percent(good['behind'])} "
        f"[bar 85 %: {'met' if good['behind'] >= GOOD else 'MISSED'}], "
        f"median {np.median(behind):+.1%}, worst {behind.max():+.1%}; own settings "
        f"{percent(good['own_behind'])}; as many workers as cores {percent(good['plain_behind'])}; "
        f"control {percent(good['control'])}"
    )
    print(
        f"by intervals: {certain.count(True)} within 3 % for certain, {certain.count(False)} not, "
        f"{certain.count(None)} undecided"
    )
    print(
        f"whole run against the own setting: median {np.median(gains):+.1%}, "
        f"from {gains.min():+.1%} to {gains.max():+.1%}; "
        f"{below} below −2 % for certain, {above} not below for certain [bar none: {verdict}]"
    )
    if kept:
        low, high = interval_of(kept)
        print(
            f"the {sum(not one.changed for one in tuned)} that keep their own setting, together: "
            f"{exp(np.mean(kept)) - 1:+.1%} ({low:+.1%} to {high:+.1%})"
        )
    inline = [one for one in tuned if one.spec.num_workers and one.inline > BEHIND]
    print(
        f"faster without workers, which tuning may only say: {len(inline)} loaders; of "
        f"{sum(map(says_inline, inline))} it says so"
    )
    print(f"lost to searching: median {np.median(lost):.1%}, most {lost.max():.1%} of the epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaders", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60.0, help="of an epoch")
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
