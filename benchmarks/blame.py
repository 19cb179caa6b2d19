"""Evaluates blame: compares what profiles promise with the gains of runs in which a cost is cut.

    python -m benchmarks.blame [--loaders N] [--turns N] [--seconds S] [--seed N] [--verbose]
                               [--keep FILE]
    python -m benchmarks.blame --kept FILE… [--verbose]

Loaders are drawn at random (`benchmarks.random_loaders`) until enough of them are starved. One turn
of a loader is a run with all costs, and one run for each cause with that cause's costs 25 %
cheaper, over the same samples. Each turn has other samples. Loaders whose gains differ much between
turns get more turns; the profiles of the first three are evaluated. All runs are profiled, so all
include the profiler's overhead. The *gain* of a cut is how much faster its run is than the run with
all costs of the same turn.

The cause that is blamed first should be the one whose cut gained most, or be within the noise of
that. The noise is the largest difference between two equal gains in 95 % of cases, estimated from
the turns of the loader. For each cause, the gain that a profile promises is compared with the mean
gain of all turns, and its interval with the gain of its own turn; both in proportion to how much
cheaper the cut made the cause (`benchmarks.realised_cuts`). *worker-cpu* is cut by cutting
all that workers compute. It is compared with other causes only where it is blamed first. The
default seed is the time; ``--seed`` draws the same loaders again. ``--keep`` writes the runs to a
file, and ``--kept`` evaluates those of such files by the present analysis.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import erf, inf
from pathlib import Path

import numpy as np

from benchmarks.blame_judge import Held, Judged
from benchmarks.blame_runs import Tried, try_out
from benchmarks.random_loader_runs import keep, lab_kinds, load, say_if_busy, tell
from benchmarks.random_loaders import draw
from pipeprof.model import Speedup
from pipeprof.units import percent

STARVED = 0.05
_RIGHT, _MEDIAN, _WITHIN, _HOLDS = 0.95, 0.02, (0.05, 0.90), (0.85, 0.97)
"""Bars: share of profiles that are right; median error of promises; an error, and the share within
it; range of the share of intervals that contain the gain."""
_MATTERS = 0.05
"""Share of the stall from which a cause without a cut is printed."""
_MOST_DRAWN = 20
"""Most loaders drawn for each starved loader that is requested."""


@dataclass(frozen=True)
class Of:
    """A promise, and the loader that it is about."""

    loader: Judged
    held: Held


def drawn(options: argparse.Namespace) -> Iterator[Tried]:
    """Run loaders drawn at random, and yield the starved ones until there are enough."""
    count, lab = 0, lab_kinds()
    for number in range(_MOST_DRAWN * options.loaders):
        spec = draw(options.seed * 10_000 + number, lab)
        tried = try_out(spec, options.turns, options.seconds, STARVED)
        tell(f"{'' if tried else 'fed: '}{spec}")
        if tried is None:
            continue
        if options.keep:
            keep(tried, options.keep)
        yield tried
        count += 1
        if count == options.loaders:
            print(f"{number + 1} loaders drawn, {count} of them starved by at least "
                  f"{percent(STARVED)}; --seed {options.seed}")  # fmt: skip
            return
    print(f"only {count} of {_MOST_DRAWN * options.loaders} loaders are starved")


def print_loader(one: Judged) -> None:
    print(f"{one.spec}\n    starved {percent(one.starved)}")
    for said in one.profiles:
        shares = ", ".join(f"{cause} {percent(share)}" for cause, share in said.shares.items())
        print(f"    blamed: {shares}: {one.outcome(said)}")
    for cause, cut in one.cuts.items():
        promises = ", ".join(_promise(said.promise(cause)) for said in one.profiles)
        kinds = " + ".join(f"{cost.place} {cost.kind}" for cost in cut)
        print(
            f"    {cause:<11}{one.gain(cause) * 100:+6.1f} % ± {one.noise * 100:.1f}, promised "
            f"{promises} ({kinds}, {percent(one.realised[cause])} cheaper)",
            flush=True,
        )


def _promise(promise: Speedup | None) -> str:
    if promise is None:
        return "nothing"
    low, high = promise.interval
    return f"{promise.share * 100:+.1f} ({low * 100:.1f} to {high * 100:.1f})"


def print_summary(every: Sequence[Judged]) -> None:
    print_blame(every)
    print_promises(every)
    print_noise(every)
    print_uncut(every)


def print_noise(every: Sequence[Judged]) -> None:
    """Print the noise of the measured gains, without which the other figures say little."""
    noise = np.array([one.noise for one in every]) * 100
    apart = float(np.median([one.difference_by_chance for one in every]))
    within = [
        erf(_WITHIN[0] / one.noise / 2**0.5) for one in every for _ in one.held() if one.noise
    ]
    print(
        f"noise of a measured gain (standard error): {np.median(noise):.1f} points in the middle, "
        f"{np.percentile(noise, 90):.1f} in one loader of ten; two gains are distinct if they "
        f"differ by {apart * 100:.1f} points or more, in the middle"
    )
    if within:
        print(
            f"of exact promises, that noise would leave {percent(float(np.mean(within)))} within 5"
        )
    say_if_busy([one.others for one in every])


def print_blame(every: Sequence[Judged]) -> None:
    outcomes = Counter(one.outcome(said) for one in every for said in one.profiles)
    total = sum(outcomes.values())
    right = 1 - outcomes["wrong"] / total
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    print(
        f"{len(every)} loaders: blamed first is what gains most, or within noise of it, in "
        f"{percent(right)} of {total} profiles ({counts}){_bar(right >= _RIGHT, percent(_RIGHT))}"
    )


def print_promises(every: Sequence[Judged]) -> None:
    held = [Of(one, each) for one in every for each in one.held()]
    lacking = sum(
        said.promise(cause) is None for one in every for said in one.profiles for cause in one.cuts
    )
    if lacking:
        print(f"no promise: {lacking} of {lacking + len(held)}")
    if not held:
        return
    errors = np.abs([of.held.error for of in held])
    near = float(np.mean(errors <= _WITHIN[0]))
    middle, holds = float(np.median(errors)), _holding(held)
    print(
        f"promised against measured: median error {middle * 100:.1f} points"
        f"{_bar(middle <= _MEDIAN, '2')}; within 5 points {percent(near)}"
        f"{_bar(near >= _WITHIN[1], percent(_WITHIN[1]))}; intervals hold {percent(holds)}"
        f"{_bar(_HOLDS[0] <= holds <= _HOLDS[1], '85 to 97 %')}"
    )
    print_cuts(every, held)
    print(f"{'points':<15}{'promises':>9}{'median':>8}{'90 %':>8}{'worst':>8}{'≤ 5':>7}{'held':>7}")
    print_group("all", held)
    print_group("blamed first", [of for of in held if of.held.first])
    for kind in sorted({cost.kind for of in held for cost in of.held.cut}):
        print_group(kind, [of for of in held if kind in {cost.kind for cost in of.held.cut}])
    for name, counts in _WORKERS.items():
        print_group(name, [of for of in held if of.loader.spec.num_workers in counts])
    for name, (least, most) in _KNOWN.items():
        print_group(name, [of for of in held if least <= of.loader.noise < most])


def print_cuts(every: Sequence[Judged], held: Sequence[Of]) -> None:
    """Print how much cheaper the cuts made their causes, and what disregarding that would give."""
    came = [share for one in every for share in one.realised.values()]
    if not came:
        return
    low, middle = np.percentile(came, [10, 50])
    full = np.abs([of.held.full_error for of in held])
    print(
        f"a cut made its cause {percent(float(middle))} cheaper in the middle, "
        f"{percent(float(low))} in one of ten; promises are compared in proportion. "
        f"With all promises for 25 %: median "
        f"error {np.median(full) * 100:.1f} points, within 5 points "
        f"{percent(float(np.mean(full <= _WITHIN[0])))}"
    )


_WORKERS = {
    "no workers": (0,), "1 worker": (1,), "2 workers": (2,), "3 and more": range(3, 100),
}  # fmt: skip
_KNOWN = {
    "known to 1": (0.0, 0.01), "known to 2": (0.01, 0.02), "known to 4": (0.02, 0.04),
    "known to more": (0.04, inf),
}  # fmt: skip
"""Range of a measured gain's standard error, which limits how exactly a promise can be checked."""


def print_group(name: str, held: Sequence[Of]) -> None:
    if not held:
        return
    errors = np.abs([of.held.error for of in held]) * 100
    print(
        f"{name:<15}{len(held):>9}{np.median(errors):>8.1f}{np.percentile(errors, 90):>8.1f}"
        f"{errors.max():>8.1f}{np.mean(errors <= 5):>7.0%}{_holding(held):>7.0%}"
    )


def _holding(held: Sequence[Of]) -> float:
    """Return the share of intervals that contain the measured gain; NaN without intervals."""
    known = [of.held.holds for of in held if of.held.holds is not None]
    return float(np.mean(known)) if known else float("nan")


def print_uncut(every: Sequence[Judged]) -> None:
    """Print the causes to which none of the loader's costs belongs."""
    shares: dict[str, list[float]] = {}
    for one in every:
        for cause, share in (item for said in one.profiles for item in said.shares.items()):
            if cause not in one.cuts:
                shares.setdefault(cause, []).append(share)
    for cause, each in sorted(shares.items(), key=lambda item: -sum(item[1])):
        if max(each) < _MATTERS:
            continue
        print(
            f"not cut: {cause} is blamed in {len(each)} profiles, for "
            f"{percent(float(np.median(each)))} of the stall in the middle, "
            f"{percent(max(each))} at most"
        )


def _bar(met: bool, bar: str) -> str:
    return f" [bar {bar}: {'met' if met else 'MISSED'}]"


def asked_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blame", description=__doc__)
    parser.add_argument("--loaders", type=int, default=40, help="that are starved")
    parser.add_argument("--turns", type=int, default=3, help="of each loader's runs, at least")
    parser.add_argument("--seconds", type=float, default=1.2, help="of each run")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn")
    parser.add_argument("--verbose", action="store_true", help="each loader")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the runs there")
    parser.add_argument("--kept", type=Path, nargs="+", metavar="FILE", help="judge those there")
    return parser.parse_args(arguments)


def judged(tried: Iterable[Tried], verbose: bool) -> Iterator[Judged]:
    for each in tried:
        one = Judged.of(each)
        if verbose:
            print_loader(one)
        yield one


def main() -> int:
    options = asked_of()
    if options.keep:
        options.keep.unlink(missing_ok=True)
    tried = load(options.kept) if options.kept else drawn(options)
    every = list(judged(tried, options.verbose))
    if every:
        print_summary(every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
