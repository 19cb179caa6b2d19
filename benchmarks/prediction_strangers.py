"""Measures the errors of a sweep about settings that it left untried, on loaders drawn at random.

    python -m benchmarks.prediction_strangers [--strangers N] [--bouts N] [--seconds S] [--pairs N]
                                              [--seed N] [--verbose] [--keep FILE]
    python -m benchmarks.prediction_strangers --kept FILE… [--verbose]

Each stranger is a loader of `benchmarks.random_loaders` that is starved with one worker. A bout
runs it in all settings of a grid of workers and prefetching, in random order. A sweep requests one
setting after another as `pipeprof sweep` does, and receives that setting's run of the first bout.
When it requests a setting again, it receives that of the next bout. Its predictions of the other
settings are compared with all their runs: a rate with their mean, an interval and an *at most* with
each run. Only settings in which the accelerator waits 5 % of the time or more count. *Noise* is the
standard error of that mean, estimated from runs of the same setting.

The sweep chooses the cheapest setting within 3 % of the fastest that it tried. If another one that
it tried may be as good, both are run alternately as `pipeprof sweep` does, and these pairs decide.
Then the choice is run alternately with the setting that is fastest over all runs, for ``--pairs``
pairs. *Behind* is how much slower the choice is, in the median pair. The default seed is the time;
``--seed`` draws the same loaders again. Workers are forked, as a grid of spawned ones takes
minutes. ``--kept`` evaluates runs that ``--keep`` wrote, by the present analysis. A choice that was
not run in pairs then is compared by the bouts.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core_use import CoreClocks
from benchmarks.random_loader_runs import (
    keep,
    lab_kinds,
    load,
    rate,
    run,
    say_if_busy,
    starved,
    steady_part,
    tell,
)
from benchmarks.random_loader_work import Surroundings, surroundings
from benchmarks.random_loaders import LoaderSpec, draw
from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.sweep.pairs import paired
from pipeprof.analyze.sweep.search import Outlook, plan
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import Recording, SweepSpec
from pipeprof.sweep.pairs import pair_count, paired_spec, run_pairs
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

GRID = tuple(
    Setting(workers, prefetch)
    for workers in (0, 1, 2, 3, 4, 6) for prefetch in (1, 2, 4)
    if workers or prefetch == 2
)  # fmt: skip
STARVED = 0.05
_MEDIAN, _WITHIN, _HOLDS, _AT_MOST = 0.03, (0.10, 0.90), (0.88, 0.97), 0.93
_GOOD, _TRIED = 0.85, 1 / 3
"""Bars of predictions: median error; an error, and the share within it; share of runs in intervals;
share of runs not above *at most*. Bars of choices: share that is good; share of settings tried."""
_MOST_DRAWN = 20
"""Most loaders drawn for each stranger that is requested."""

_DOUBT = 0.2
"""Relative difference of rates below which a sweep's trials do not distinguish two settings."""
_SPEC = SweepSpec(urls=(), workers=(), prefetch=(), batch_sizes=(), step_s=None)
"""Spec of a sweep that, by default, decides its choice by pairs of runs."""

Pair = tuple[Setting, Setting]
"""Two settings that were run alternately."""


@dataclass(frozen=True)
class Stranger:
    """A loader's runs in all settings of the grid."""

    spec: LoaderSpec
    bouts: tuple[Mapping[Setting, Recording], ...]
    pairs: Mapping[Pair, tuple[tuple[float, float], ...]]
    """Batches/s of alternating runs."""
    others: float | None = None
    """Share of all cores, 0..1, that other processes used during the runs."""

    def __reduce__(self) -> Any:
        return Stranger, (
            self.spec,
            self.bouts,
            self.pairs,
            self.others,
        )  # without what is derived from these

    @cached_property
    def runs(self) -> dict[Setting, list[Measured]]:
        """Runs of each setting, one per bout."""
        return {each: [steady_part(bout[each]) for bout in self.bouts] for each in self.bouts[0]}

    def rates(self, setting: Setting) -> list[float]:
        return [run.batches_per_s for run in self.runs[setting]]

    def starved(self, setting: Setting) -> float:
        return float(np.mean([starved(bout[setting]) for bout in self.bouts]))

    @property
    def best(self) -> Setting:
        """The setting with the highest mean rate over all runs."""
        return max(self.runs, key=lambda setting: float(np.mean(self.rates(setting))))

    @property
    def spread(self) -> float:
        """Relative standard deviation of one run's rate; NaN where none was run twice."""
        logs = np.log([self.rates(setting) for setting in self.runs])
        return float(np.sqrt(logs.var(axis=1, ddof=1).mean()))


@dataclass(frozen=True)
class Sweep:
    """What a guided sweep of a stranger tried and reported."""

    stranger: Stranger
    tried: tuple[Measured, ...]
    outlooks: tuple[Outlook, ...]
    """Predictions of the settings that it left untried."""

    @classmethod
    def of(cls, stranger: Stranger, cores: float) -> Sweep:
        tried: list[Measured] = []
        while True:
            told = plan(list(stranger.runs), tried, cores)
            if told.trial is None:
                return cls(stranger, tuple(tried), told.outlooks)
            again = sum(each.setting == told.trial for each in tried)
            runs = stranger.runs[told.trial]
            tried.append(runs[again % len(runs)])

    @property
    def first_choice(self) -> Setting:
        """The choice by trials alone: the cheapest of those within 3 % of the fastest."""
        near = max(run.batches_per_s for run in self.tried) * (1 - EQUALLY_FAST)
        return min((run.setting for run in self.tried if run.batches_per_s >= near), key=_cost)

    @property
    def doubt(self) -> Pair | None:
        """The first choice and the fastest other setting tried, if that one may be as good."""
        first = self.first_choice
        others = [run for run in self.tried if run.setting != first]
        if not others:
            return None
        rival = max(others, key=lambda run: run.batches_per_s)
        rate = max(run.batches_per_s for run in self.tried if run.setting == first)
        return (first, rival.setting) if rival.batches_per_s > rate * (1 - _DOUBT) else None

    @property
    def chosen(self) -> Setting:
        """The first choice, or its rival where pairs of runs favour that."""
        rates = self.stranger.pairs.get(self.doubt) if self.doubt else None
        if self.doubt is None or not rates:
            return self.first_choice
        told = paired(0, 1, rates).difference
        return min(self.doubt, key=_cost) if told == "none" else self.doubt[told == "slower"]

    @property
    def pairs(self) -> int:
        """Number of pairs that the sweep may run to decide its choice."""
        return pair_count(_SPEC, len(self.tried)) if self.doubt else 0

    def behind(self) -> tuple[float, bool]:
        """Return by how much the best is faster than the choice, and whether pairs were run for it;
        else the bouts are compared."""
        pair = self.chosen, self.stranger.best
        if pair[0] == pair[1]:
            return 0.0, True
        bouts = list(zip(*map(self.stranger.rates, pair), strict=True))
        rates = self.stranger.pairs.get(pair, bouts)
        return float(np.median([best / chosen - 1 for chosen, best in rates])), pair in (
            self.stranger.pairs
        )

    def cells(self) -> list[Cell]:
        """Return the settings that were left untried and in which training is starved."""
        return [
            _cell(self.stranger, told) for told in self.outlooks
            if self.stranger.starved(told.setting) >= STARVED
        ]  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A setting that the sweep left untried, with its prediction and its runs."""

    setting: Setting
    batches_per_s: float
    """Predicted rate."""
    most: float
    interval: tuple[float, float]
    """90 % interval of the rate of a run that is as long."""
    rates: tuple[float, ...]

    @property
    def error(self) -> float:
        return self.batches_per_s / float(np.mean(self.rates)) - 1

    @property
    def held(self) -> float:
        """Share of the runs in the interval."""
        return float(np.mean([self.interval[0] <= each <= self.interval[1] for each in self.rates]))

    @property
    def most_held(self) -> float:
        """Share of the runs that were no faster than ``most``."""
        return float(np.mean([each <= self.most for each in self.rates]))


def _cell(stranger: Stranger, told: Outlook) -> Cell:
    """Return the cell as `pipeprof sweep` reports it: *at most* is the interval's upper end."""
    rates = tuple(stranger.rates(told.setting))
    return Cell(told.setting, told.batches_per_s, told.interval[1], told.interval, rates)


def met(options: argparse.Namespace, cores: float) -> Iterator[Stranger]:
    """Draw loaders, and run and yield as many strangers as are requested."""
    count, lab = 0, lab_kinds()
    for number in range(_MOST_DRAWN * options.strangers):
        drawn = draw(options.seed * 10_000 + number, lab)
        spec = replace(drawn, start_method="fork", num_workers=1)
        with surroundings([spec]) as around, any_workers():
            if starved(run(spec, around, 0, options.seconds / 2)) < STARVED:
                continue
            tell(str(spec))
            stranger = _run_all(spec, around, options, cores)
        if options.keep:
            keep(stranger, options.keep)
        yield stranger
        count += 1
        if count == options.strangers:
            print(f"{number + 1} loaders drawn, {count} of them starved with one worker; "
                  f"--seed {options.seed}")  # fmt: skip
            return


def _run_all(
    spec: LoaderSpec, around: Surroundings, options: argparse.Namespace, cores: float
) -> Stranger:
    chance, bouts, turn = random.Random(spec.seed), [], 0
    before = CoreClocks.read()
    for _ in range(options.bouts):
        runs = {}
        for setting in chance.sample(GRID, len(GRID)):
            turn += 1
            runs[setting] = run(_with(spec, setting), around, turn, options.seconds)
        bouts.append(runs)

    def in_pairs(pair: Pair, count: int, seconds: float) -> dict[Pair, Any]:
        def once(setting: Setting, nth: int, of: int) -> float:
            return rate(run(_with(spec, setting), around, next(turns), seconds))

        return {pair: run_pairs(once, (0, 1), pair, count).samples_per_s}

    turns = itertools.count(turn + 1)
    stranger = Stranger(spec, tuple(bouts), {})
    sweep = Sweep.of(stranger, cores)
    if sweep.pairs and sweep.doubt:
        seconds = paired_spec(replace(_SPEC, trial_s=options.seconds)).trial_s
        stranger = replace(stranger, pairs=in_pairs(sweep.doubt, sweep.pairs, seconds))
    pair = Sweep.of(stranger, cores).chosen, stranger.best
    if pair[0] != pair[1]:
        pairs = {**stranger.pairs, **in_pairs(pair, options.pairs, options.seconds)}
        stranger = replace(stranger, pairs=pairs)
    return replace(stranger, others=CoreClocks.read().others_since(before))


def _cost(setting: Setting) -> tuple[int, int]:
    return setting.num_workers, setting.prefetch_factor


def _with(spec: LoaderSpec, setting: Setting) -> LoaderSpec:
    return replace(spec, num_workers=setting.num_workers, prefetch_factor=setting.prefetch_factor)


def print_sweep(one: Sweep, cells: Sequence[Cell]) -> None:
    behind, paired = one.behind()
    chosen, best = (f"{each.num_workers} × {each.prefetch_factor}"
                    for each in (one.chosen, one.stranger.best))  # fmt: skip
    print(
        f"{one.stranger.spec}\n    tried {len(one.tried)} of {len(one.stranger.runs)}; chosen "
        f"{chosen}, best {best}, behind {behind:+.1%}{'' if paired else ' (by bouts)'}; noise of "
        f"one run {one.stranger.spread:.1%}",
        flush=True,
    )
    for cell in cells:
        rates = " ".join(f"{each:.1f}" for each in cell.rates)
        print(
            f"    W={cell.setting.num_workers} P={cell.setting.prefetch_factor}: error "
            f"{cell.error:+6.1%}, noise {one.stranger.spread / len(cell.rates) ** 0.5:.1%}; "
            f"predicted {cell.batches_per_s:.1f} ({cell.interval[0]:.1f} to "
            f"{cell.interval[1]:.1f}, at most {cell.most:.1f}), measured {rates}",
            flush=True,
        )


def print_summary(sweeps: Sequence[Sweep], cells: Sequence[Cell]) -> None:
    spreads = [one.stranger.spread for one in sweeps]
    noise = np.array([one.stranger.spread / len(one.stranger.bouts) ** 0.5 for one in sweeps])
    print(
        f"{len(sweeps)} sweeps, {len(cells)} settings left untried that starve; runs of a setting "
        f"differ by {np.median(spreads):.1%} (one standard deviation, in the middle stranger), "
        f"{max(spreads):.1%} in the worst"
    )
    if cells:
        errors = np.abs([cell.error for cell in cells])
        middle, near = float(np.median(errors)), float(np.mean(errors <= _WITHIN[0]))
        held = float(np.mean([cell.held for cell in cells]))
        most = float(np.mean([cell.most_held for cell in cells]))
        print(
            f"errors: median {middle:.1%}{_bar(middle <= _MEDIAN, '3 %')}; within 10 % "
            f"{percent(near)}{_bar(near >= _WITHIN[1], '90 %')}; 90 % within "
            f"{np.percentile(errors, 90):.1%}, worst {errors.max():.1%}; noise of what they are "
            f"held against {np.median(noise):.1%}\n"
            f"intervals hold {percent(held)}{_bar(_HOLDS[0] <= held <= _HOLDS[1], '88 to 97 %')}; "
            f"at most holds {percent(most)}{_bar(most >= _AT_MOST, '93 %')}"
        )
    behind = np.array([one.behind()[0] for one in sweeps])
    tried = [len({run.setting for run in one.tried}) / len(one.stranger.runs) for one in sweeps]
    good = float(np.mean(behind <= EQUALLY_FAST))
    print(
        f"chosen within 3 % of the best: {percent(good)}{_bar(good >= _GOOD, '85 %')}, worst "
        f"{behind.max():.1%} behind; tried {percent(float(np.mean(tried)))} of the grid"
        f"{_bar(np.mean(tried) <= _TRIED, 'a third')}, {percent(max(tried))} at most"
    )
    say_if_busy([one.stranger.others for one in sweeps])


def _bar(met: object, bar: str) -> str:
    return f" [bar {bar}: {'met' if met else 'MISSED'}]"


def asked_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prediction_strangers", description=__doc__
    )
    parser.add_argument("--strangers", type=int, default=16)
    parser.add_argument("--bouts", type=int, default=2, help="in each of which all settings run")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--pairs", type=int, default=4, help="to judge a choice, 2 or more")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn")
    parser.add_argument("--verbose", action="store_true", help="each stranger and setting")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    parser.add_argument("--kept", type=Path, nargs="+", metavar="FILE", help="judge those there")
    return parser.parse_args(arguments)


def main() -> int:
    options, cores = asked_of(), float(len(os.sched_getaffinity(0)))
    if options.keep:
        options.keep.unlink(missing_ok=True)
    sweeps, every = [], []
    for stranger in load(options.kept) if options.kept else met(options, cores):
        one = Sweep.of(stranger, cores)
        cells = one.cells()
        if options.verbose:
            print_sweep(one, cells)
        sweeps.append(one)
        every += cells
    if sweeps:
        print_summary(sweeps, every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
