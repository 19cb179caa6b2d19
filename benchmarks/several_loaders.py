"""Measures what profiles say of loops that take batches from two or three loaders in each step.

    python -m benchmarks.several_loaders [--loops N] [--seed N] [--seconds S]

The loaders are drawn at random. A clock in the loop tells which share of its time is no training
step; each profile says how long the accelerator waited. Then all numbers of workers that are
advised are taken together, and the rate is compared with what was promised: the lowest promise, as
each holds only as far as the other loaders keep up. The control is the same loop, run again.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import nan
from time import perf_counter

import numpy as np

import pipeprof
from benchmarks.random_loader_runs import tell
from benchmarks.random_loader_surroundings import Surroundings, surroundings
from benchmarks.random_loader_work import loader_of
from benchmarks.random_loaders import LoaderSpec, draw
from pipeprof.model import Profile, Recommendation
from pipeprof.sweep.trial import any_workers
from pipeprof.units import percent

_STEPS_S = (0.002, 0.02)
_WARMUP = 0.25
"""Share of a run that is not measured by the loop's clock."""


@dataclass(frozen=True)
class Looped:
    """One run of a loop over several loaders."""

    profiles: tuple[Profile, ...]
    waited: float
    """Share of the time that was no step, by the loop's own clock."""
    steps_per_s: float


@dataclass(frozen=True)
class Judged:
    """One loop: run twice, and once more as its profiles advise."""

    first: Looped
    again: Looped
    advised: Looped | None
    promised: tuple[float, float, float] | None
    """Steps/s that were promised, and the interval; ``None`` where there was no such promise."""


def drawn(chance: random.Random) -> tuple[tuple[LoaderSpec, ...], float]:
    """Draw two or three loaders, and the seconds of a step. Half of the loops have loaders that
    wait and do not compute, so that more workers help however few cores there are."""
    specs: list[LoaderSpec] = []
    count, wait = chance.choice((2, 2, 3)), chance.random() < 0.5
    while len(specs) < count:
        spec = draw(chance.randrange(10**9))
        computes = any(cost.kind not in ("sleep", "request") for cost in spec.costs)
        if spec.pins or spec.start_method != "fork" or (wait and computes):
            continue
        specs.append(replace(spec, num_workers=min(2, spec.num_workers)) if wait else spec)
    return tuple(specs), chance.uniform(*_STEPS_S)


def loop(
    specs: Sequence[LoaderSpec], step_s: float, around: Surroundings, turn: int, seconds: float
) -> Looped:
    """Train for so many seconds after the first batches."""
    loaders = [
        pipeprof.wrap(loader_of(spec, around, turn * 10**6), f"loader {number}", whole=True)
        for number, spec in enumerate(specs)
    ]
    steps: list[tuple[float, float]] = []
    batches = zip(*loaders, strict=False)
    for _ in batches:
        begun_s = perf_counter()
        time.sleep(step_s)
        steps.append((begun_s, perf_counter()))
        if steps[-1][1] - steps[0][0] > seconds and len(steps) > 60:
            break
    measured = np.array(steps[int(_WARMUP * len(steps)) :])
    took_s = measured[-1, 1] - measured[0, 1]
    stepped_s = float((measured[1:, 1] - measured[1:, 0]).sum())
    profiles = tuple(each.profile() for each in loaders)
    del batches
    return Looped(profiles, 1 - stepped_s / took_s, (len(measured) - 1) / took_s)


def judge(specs: Sequence[LoaderSpec], step_s: float, seconds: float) -> Judged:
    with ExitStack() as stack:
        around = stack.enter_context(surroundings(specs))
        stack.enter_context(any_workers())
        first, again = (loop(specs, step_s, around, turn, seconds) for turn in (0, 1))
        advice = [_more_workers(each) for each in first.profiles]
        if not any(advice):
            return Judged(first, again, None, None)
        changed = [
            replace(spec, num_workers=int(each.proposed)) if each else spec
            for spec, each in zip(specs, advice, strict=True)
        ]
        return Judged(first, again, loop(changed, step_s, around, 2, seconds), _promise(first))


def _more_workers(profile: Profile) -> Recommendation | None:
    found = (each for each in profile.recommendations if each.setting == "num_workers")
    return next((each for each in found if each.interval is not None), None)


def _promise(run: Looped) -> tuple[float, float, float] | None:
    """Return the lowest promise in steps/s; ``None`` unless each loader has one with a number."""
    found = []
    for profile in run.profiles:
        advice = _more_workers(profile)
        if advice is None or advice.predicted_samples_per_s is None or advice.interval is None:
            return None
        samples = profile.throughput.samples_per_s / profile.throughput.batches_per_s
        rate, (low, high) = advice.predicted_samples_per_s, advice.interval
        found.append((rate / samples, low / samples, high / samples))
    return min(found)


def report(loops: Sequence[Judged]) -> None:
    said = [
        (run.waited, each)
        for one in loops
        for run in (one.first, one.again)
        for each in run.profiles
    ]
    print(f"{len(loops)} loops, {len(said)} profiles; waiting {_range([one for one, _ in said])}")
    off = [each.diagnosis.starved_fraction - waited for waited, each in said]
    own = [_own_share(each) - waited for waited, each in said]
    print(f"starved, against the loop's clock: off by {_points(off)}")
    print(f"without the waits for other loaders it would be off by {_points(own)}")
    advised = [(one, one.advised) for one in loops if one.advised]
    again = [one.again.steps_per_s / one.first.steps_per_s - 1 for one in loops]
    gains = [after.steps_per_s / one.first.steps_per_s - 1 for one, after in advised]
    if gains:
        print(f"gain of {len(gains)} loops as advised: {_range(gains)}")
    print(f"control, the same loop again: {_range(again)}")
    kept = [(one.promised, after.steps_per_s) for one, after in advised if one.promised]
    if kept:
        errors = [promised[0] / rate - 1 for promised, rate in kept]
        held = sum(promised[1] <= rate <= promised[2] for promised, rate in kept)
        median, worst = float(np.median(np.abs(errors))), max(errors, key=abs)
        print(
            f"promised for {len(kept)}, against measured: median {percent(median)}, "
            f"worst {percent(worst)}; intervals hold {held} of {len(kept)}"
        )


def _own_share(profile: Profile) -> float:
    own_s = profile.stall_s - profile.blame.get("other-loaders", 0.0)
    return own_s / profile.wall_s


def _points(values: Sequence[float]) -> str:
    size = 100 * np.abs(values)
    return f"{np.median(size):.1f} points in the median, {size.max():.1f} at worst"


def _range(values: Sequence[float]) -> str:
    low, middle, high = np.quantile(values, (0, 0.5, 1))
    return f"{percent(low)} to {percent(high)}, median {percent(middle)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loops", type=int, default=12)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=4.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    chance = random.Random(seed)
    print(f"seed {seed}")
    loops = []
    for number in range(options.loops):
        specs, step_s = drawn(chance)
        judged = judge(specs, step_s, options.seconds)
        loops.append(judged)
        after = judged.advised.steps_per_s if judged.advised else nan
        promised = judged.promised[0] if judged.promised else nan
        tell(
            f"{number + 1}: waits {judged.first.waited:.0%}, {judged.first.steps_per_s:.1f} → "
            f"{after:.1f} steps/s, promised {promised:.1f}"
        )
    report(loops)


if __name__ == "__main__":
    main()
