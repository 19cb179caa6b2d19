"""Measures the errors of a sweep about settings that it left untried, on loaders drawn at random.

    python -m benchmarks.prediction_strangers [--strangers N] [--bouts N] [--seconds S] [--pairs N]
                                              [--seed N] [--verbose] [--keep FILE]
    python -m benchmarks.prediction_strangers --kept FILE… [--verbose] [--keep FILE]

Each stranger is a loader of `benchmarks.random_loaders` that is starved with one worker. A bout
runs it in all settings of a grid of workers and prefetching, in random order. A sweep receives runs
of the first bout (`benchmarks.stranger_sweeps`). Its predictions of the other settings are compared
with all their runs: a rate with their mean, an interval and an *at most* with each run. Only
settings in which the accelerator waits 5 % of the time or more count. *Noise* is the standard error
of that mean, estimated from runs of the same setting. As a control, a run of the setting itself is
compared with its other runs, as if the sweep had tried it. An interval wider than ±30 % is reported
as a range without a number, and then no error is counted.

The sweep chooses the cheapest setting within 3 % of the fastest that it tried. If another one that
it tried may be as good, both are run alternately as `pipeprof sweep` does, until that decides.
Then the choice is run alternately with the setting that is fastest over all runs, until the
interval of their ratio is ±2 % or ``--pairs`` have run. *Behind* is by how much the latter is
faster. The default seed is the time; ``--seed`` draws the same loaders again. Workers are forked,
as a grid of spawned ones takes minutes. ``--kept`` evaluates runs that ``--keep`` wrote, by the
present analysis. A choice that was not run in pairs then is compared by the bouts; with ``--keep``
the missing pairs are run, and all is written there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

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
    tell,
)
from benchmarks.random_loader_surroundings import Surroundings, surroundings
from benchmarks.random_loaders import LoaderSpec, draw
from benchmarks.stranger_sweeps import SPEC, STARVED, Cell, Pair, Rates, Stranger, Sweep
from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import PairedRuns
from pipeprof.sweep.pairs import paired_spec, run_pairs
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

GRID = tuple(
    Setting(workers, prefetch)
    for workers in (0, 1, 2, 3, 4, 6) for prefetch in (1, 2, 4)
    if workers or prefetch == 2
)  # fmt: skip
_MEDIAN, _WITHIN, _HOLDS, _AT_MOST = 0.03, (0.10, 0.90), (0.88, 0.97), 0.93
_GOOD, _TRIED = 0.85, 1 / 3
"""Bars of predictions: median error; an error, and the share within it; share of runs in intervals;
share of runs not above *at most*. Bars of choices: share that is good; share of settings tried."""
_STEADY = 0.05
"""Relative standard deviation of the runs of a steady stranger."""
_MOST_DRAWN = 20
"""Most loaders drawn for each stranger that is requested."""
_EXACT = 0.02
"""Half width of the interval of *behind* that ends its pairs."""


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
    stranger = in_pairs(Stranger(spec, tuple(bouts), {}), around, options, cores)
    return replace(stranger, others=CoreClocks.read().others_since(before))


def in_pairs(
    stranger: Stranger, around: Surroundings, options: argparse.Namespace, cores: float
) -> Stranger:
    """Run the pairs that decide the choice, and those that compare it with the best setting. Pairs
    that the stranger has already are not run again."""
    sweep = Sweep.of(stranger, cores)
    alternate = partial(_alternate, around=around, trial_s=options.seconds)
    if sweep.doubt and sweep.pairs and sweep.doubt not in stranger.pairs:
        rates = alternate(stranger, sweep.doubt, sweep.pairs, sweep.decided)
        stranger = replace(stranger, pairs={**stranger.pairs, sweep.doubt: rates})
    sweep = replace(sweep, stranger=stranger)
    if sweep.behind().pairs == 0:
        rates = alternate(stranger, sweep.judged, options.pairs, _exact)
        stranger = replace(stranger, judging={**stranger.judging, sweep.judged: rates})
    return stranger


def _exact(found: PairedRuns) -> bool:
    low, high = found.speed_interval
    return high - low <= 2 * _EXACT


def _alternate(
    stranger: Stranger,
    pair: Pair,
    most: int,
    until: Callable[[PairedRuns], bool],
    around: Surroundings,
    trial_s: float,
) -> Rates:
    """Run ``pair`` alternately, ``most`` times at most, as long as in a sweep whose trials take
    ``trial_s``. Return their batches/s."""
    paired = (*stranger.pairs.values(), *stranger.judging.values())
    earlier = len(stranger.bouts) * len(GRID) + 2 * sum(map(len, paired))
    turns = itertools.count(earlier + 1)
    seconds = paired_spec(replace(SPEC, trial_s=trial_s)).trial_s

    def once(setting: Setting, nth: int, of: int) -> float:
        return rate(run(_with(stranger.spec, setting), around, next(turns), seconds))

    return run_pairs(once, (0, 1), pair, most, until).samples_per_s


def kept(options: argparse.Namespace, cores: float) -> Iterator[Stranger]:
    """Yield the strangers that were written, with the missing pairs if they are to be written
    again."""
    for stranger in load(options.kept):
        if options.keep:
            tell(str(stranger.spec))
            with surroundings([stranger.spec]) as around, any_workers():
                stranger = in_pairs(stranger, around, options, cores)
            keep(stranger, options.keep)
        yield stranger


def _with(spec: LoaderSpec, setting: Setting) -> LoaderSpec:
    return replace(spec, num_workers=setting.num_workers, prefetch_factor=setting.prefetch_factor)


def print_sweep(one: Sweep, cells: Sequence[Cell]) -> None:
    behind = one.behind()
    chosen, best = (f"{each.num_workers} × {each.prefetch_factor}" for each in one.judged)
    low, high = behind.interval
    by = "" if behind.pairs is None else f" ({low:+.1%} to {high:+.1%}, {behind.pairs} pairs)"
    print(
        f"{one.stranger.spec}\n    tried {len(one.tried)} of {len(one.stranger.runs)}; chosen "
        f"{chosen}, best {best}, behind {behind.share:+.1%}{by}; noise of one run "
        f"{one.stranger.spread:.1%}",
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
    if any(cell.has_number for cell in cells):
        errors = np.abs([cell.error for cell in cells if cell.has_number])
        middle, near = float(np.median(errors)), float(np.mean(errors <= _WITHIN[0]))
        every = np.abs([cell.error for cell in cells])
        held = float(np.mean([cell.held for cell in cells]))
        most = float(np.mean([cell.most_held for cell in cells]))
        print(
            f"errors: median {middle:.1%}{_bar(middle <= _MEDIAN, '3 %')}; within 10 % "
            f"{percent(near)}{_bar(near >= _WITHIN[1], '90 %')}; 90 % within "
            f"{np.percentile(errors, 90):.1%}, worst {errors.max():.1%}; noise of what they are "
            f"held against {np.median(noise):.1%}\n"
            f"{percent(1 - len(errors) / len(cells))} are a range without a number; with the "
            f"middle of each: median {np.median(every):.1%}; within 10 % "
            f"{percent(float(np.mean(every <= _WITHIN[0])))}\n"
            f"{_control(cells)}\n"
            f"intervals hold {percent(held)}{_bar(_HOLDS[0] <= held <= _HOLDS[1], '88 to 97 %')}; "
            f"at most holds {percent(most)}{_bar(most >= _AT_MOST, '93 %')}"
        )
    behind = [one.behind() for one in sweeps]
    tried = [len({run.setting for run in one.tried}) / len(one.stranger.runs) for one in sweeps]
    good = float(np.mean([each.share <= EQUALLY_FAST for each in behind]))
    beyond = sum(each.interval[0] > EQUALLY_FAST for each in behind)
    wide = sum(each.interval[1] - each.interval[0] > 2 * _EXACT for each in behind)
    print(
        f"chosen within 3 % of the best: {percent(good)}{_bar(good >= _GOOD, '85 %')}, worst "
        f"{max(each.share for each in behind):.1%} behind; {beyond} of {len(behind)} are further "
        f"behind beyond noise, and {wide} are not known to ±2 %\n"
        f"tried {percent(float(np.mean(tried)))} of the grid"
        f"{_bar(np.mean(tried) <= _TRIED, 'a third')}, {percent(max(tried))} at most"
    )
    say_if_busy([one.stranger.others for one in sweeps])


def _control(cells: Sequence[Cell]) -> str:
    """Return the errors of runs of the settings themselves, and those of steady strangers."""
    runs = np.abs([error for cell in cells for error in cell.errors_of_runs])
    steady = [cell for cell in cells if cell.noise <= _STEADY]
    text = (
        f"had the setting been run instead: median {np.median(runs):.1%}; within 10 % "
        f"{percent(float(np.mean(runs <= _WITHIN[0])))}"
    )
    if not steady:
        return text
    errors = np.abs([cell.error for cell in steady])
    near = float(np.mean(errors <= _WITHIN[0]))
    return (
        f"{text}; where runs differ by at most 5 %, {len(steady)} predictions: median "
        f"{np.median(errors):.1%}; within 10 % {percent(near)}"
    )


def _bar(met: object, bar: str) -> str:
    return f" [bar {bar}: {'met' if met else 'MISSED'}]"


def asked_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prediction_strangers", description=__doc__
    )
    parser.add_argument("--strangers", type=int, default=16)
    parser.add_argument("--bouts", type=int, default=2, help="2 or more; each runs all settings")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--pairs", type=int, default=24, help="at most, to judge a choice")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn")
    parser.add_argument("--verbose", action="store_true", help="each stranger and setting")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    parser.add_argument("--kept", type=Path, nargs="+", metavar="FILE", help="evaluate those there")
    return parser.parse_args(arguments)


def main() -> int:
    options, cores = asked_of(), float(len(os.sched_getaffinity(0)))
    if options.keep:
        options.keep.unlink(missing_ok=True)
    sweeps, every = [], []
    for stranger in (kept if options.kept else met)(options, cores):
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
