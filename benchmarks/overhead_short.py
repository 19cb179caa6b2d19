"""Measures what profiling costs short runs: epochs of few batches, with start and end of workers.

    python -m benchmarks.overhead_short [--limit SECONDS] [--no-bars]

Starting a worker takes longer by chance than profiling costs. So the epochs that are compared have
only as many batches as are recorded from the start: epochs without a profiler, with pipeprof, and
again without one alternate in random order. Each has a loader of its own, and each process runs
several rounds.

What a further batch costs, timed alone or recorded in full, is measured in one stream of batches
whose hooks are switched on and off, as in `benchmarks.overhead`. An epoch of 200 batches costs the
sum: its start, its further batches, and the windows that its budget pays for. As a check, whole
epochs of the shortest batches are compared, too.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter

import numpy as np
import torch
from torch.utils.data import DataLoader

import pipeprof
from benchmarks.overhead import CLOCKING, OURS, measure_ours
from benchmarks.overhead_cases import BATCH_SIZE, Case, Work, repeats
from benchmarks.overhead_stats import ENOUGH, Estimate, Floats, Verdict, added, judge, say
from pipeprof.loaders.instrument.sampling import COST_S, recorded_per_s, shortest_window
from pipeprof.units import format_duration as duration

RECORDED = 24
"""Batches of the epochs that are compared. The first window of records ends before."""
BATCHES = 200
"""Batches of the epochs whose cost is evaluated."""
BATCHES_S = (0.0005, 0.0015, 0.005)
_PREFETCHED = 2
"""Batches that the one worker prefetches."""
_ARMS = ("plain", "pipeprof", "plain again")
_MEASURES = ("wall", "CPU")
_ROUNDS = 25
"""Rounds per process. The first one is discarded."""
_MOST, _QUIET = 0.01, 0.002
_CHECK_SHARE = 0.25
"""Share of the time for whole epochs."""
_START_SHARE = 0.5
"""Share of the rest for the start of epochs."""


class Short(Work):
    """The samples of one epoch."""

    def __init__(self, repeats: int, batches: int) -> None:
        super().__init__(repeats)
        self._batches = batches

    def __len__(self) -> int:
        return self._batches * BATCH_SIZE


def measure(end: float) -> tuple[Floats, Floats]:
    """Return the seconds of short epochs by [`_MEASURES`, `_ARMS`, processes, rounds], and the
    usual seconds of long plain ones by [`BATCHES_S`, `_MEASURES`]. Both are measured in turns,
    until ``end`` or until the two plain arms differ by little of the shortest long epoch."""
    data, sessions = Short(repeats(BATCHES_S[0]), RECORDED), []
    long_data = [Short(repeats(batch_s), BATCHES) for batch_s in BATCHES_S]
    long_s: list[list[tuple[float, float]]] = []
    while not sessions or not (perf_counter() > end or _quiet(_stacked(sessions), _usual(long_s))):
        long_s.append([_epoch(each, profiled=False) for each in long_data])
        sessions.append(_in_child(data, len(sessions)))
    return _stacked(sessions), _usual(long_s)


def run(seconds: float) -> list[tuple[Verdict, str]]:
    """Measure, print tables, and return the verdicts."""
    times, epochs_s = measure(perf_counter() + _START_SHARE * seconds)
    print(
        f"\nepochs of {RECORDED} batches of {duration(BATCHES_S[0])}, 1 worker, start and end too"
    )
    costs = {}
    for name, (plain, ours, again) in zip(_MEASURES, times, strict=True):
        cost = added(ours, plain, again, relative=False)
        control = added(again, plain, relative=False)
        costs[name] = cost, control
        print_row(name, plain, cost, control, relative=False)
    further = further_batches((1 - _START_SHARE) * seconds)
    verdicts = []
    for batch_s, lengths_s in zip(BATCHES_S, epochs_s.tolist(), strict=True):
        for name, epoch_s in zip(_MEASURES, lengths_s, strict=True):
            start, control = costs[name]
            timed, recorded = further[name]
            later = _recorded_later(epoch_s)
            whole = _sum_of((1, start), (BATCHES - RECORDED - later, timed), (later, recorded))
            what = f"{duration(batch_s)} a batch, {duration(epoch_s)} an epoch"
            line = f"{what}: {name}, at most +1 %: "
            share = _share(whole, epoch_s)
            verdict = judge(share, _share(control, epoch_s), _MOST, _QUIET)
            verdicts.append((verdict, line + say(share, relative=True)))
    return verdicts


def further_batches(seconds: float) -> dict[str, tuple[Estimate, Estimate]]:
    """Print and return what a batch costs that is only timed, and one that is recorded in full, by
    `_MEASURES`."""
    case = Case(
        "further batches", Work(repeats(BATCHES_S[0])), BATCH_SIZE, workers=1, batches=4,
        rounds=400, time_share=1, judged=("wall_s", "cpu_s"), relative=False, quiet=0.0, most=0.0,
    )  # fmt: skip
    series = measure_ours(case, perf_counter() + seconds)
    print(f"\nfurther batches of {duration(BATCHES_S[0])}")
    found = {}
    for name, measure in zip(_MEASURES, case.judged, strict=True):
        found[name] = series.cost(CLOCKING, measure), series.cost(OURS, measure)
        timed, recorded = (say(each, relative=False) for each in found[name])
        again = say(series.control(measure), relative=False)
        print(f"  {name:<6}only timed {timed}   recorded {recorded}   plain again {again}")
    return found


def _recorded_later(epoch_s: float) -> int:
    """Return the batches of later windows, which an epoch's budget pays for."""
    length = shortest_window(_PREFETCHED)
    return length * int(epoch_s * recorded_per_s(COST_S) / length)


def _sum_of(*parts: tuple[float, Estimate]) -> Estimate:
    """Return the sum of independent estimates, each times a number."""
    parts = tuple(part for part in parts if part[0])  # else 0 times an unknown end is no number
    middle = sum(count * each.middle for count, each in parts)
    below = sum((count * (each.middle - each.low)) ** 2 for count, each in parts) ** 0.5
    above = sum((count * (each.high - each.middle)) ** 2 for count, each in parts) ** 0.5
    return Estimate(middle, middle - below, middle + above)


def check_whole(end: float) -> None:
    """Compare whole epochs of the shortest batches, and print their cost."""
    data, sessions = Short(repeats(BATCHES_S[0]), BATCHES), list[Floats]()
    while len(sessions) < ENOUGH or perf_counter() < end:
        sessions.append(_in_child(data, len(sessions)))
    print(f"\nwhole epochs of {BATCHES} batches of {duration(BATCHES_S[0])}")
    for name, (plain, ours, again) in zip(_MEASURES, _stacked(sessions), strict=True):
        cost = added(ours, plain, again, relative=True)
        control = added(again, plain, relative=True)
        print_row(name, plain, cost, control, relative=True)


def print_row(name: str, plain: Floats, cost: Estimate, control: Estimate, relative: bool) -> None:
    print(
        f"  {name:<6}{duration(float(np.median(plain)))}   pipeprof {say(cost, relative)}   "
        f"plain again {say(control, relative)}   {plain.size:,} rounds"
    )


def _share(cost: Estimate, epoch_s: float) -> Estimate:
    return Estimate(*(each / epoch_s for each in (cost.middle, cost.low, cost.high)))


def _in_child(data: Short, seed: int) -> Floats:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as child:
        return child.submit(_session, data, seed).result()


def _session(data: Short, seed: int) -> Floats:
    """Return the seconds of epochs by [`_MEASURES`, `_ARMS`, rounds]."""
    torch.set_num_threads(1)
    chance, rounds = random.Random(seed), []
    for _ in range(_ROUNDS):
        order = list(range(len(_ARMS)))
        chance.shuffle(order)
        spent = {arm: _epoch(data, profiled=_ARMS[arm] == "pipeprof") for arm in order}
        rounds.append([spent[arm] for arm in range(len(_ARMS))])
    return np.array(rounds[1:]).transpose(2, 1, 0)


def _epoch(data: Short, profiled: bool) -> tuple[float, float]:
    """Return wall time and CPU time of an epoch, including the workers' CPU time."""
    loader = DataLoader(data, BATCH_SIZE, num_workers=1, multiprocessing_context="fork")
    gc.collect()
    cpu_s, start = _cpu_s(), perf_counter()
    for _ in pipeprof.wrap(loader) if profiled else loader:
        pass
    return perf_counter() - start, _cpu_s() - cpu_s


def _cpu_s() -> float:
    used = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return sum(each.ru_utime + each.ru_stime for each in used)


def _stacked(sessions: list[Floats]) -> Floats:
    return np.stack(sessions, axis=2)


def _usual(long_s: list[list[tuple[float, float]]]) -> Floats:
    return np.median(np.array(long_s), axis=0)


def _quiet(times: Floats, epochs_s: Floats) -> bool:
    bound_s = _QUIET * float(epochs_s.min())
    return all(added(again, plain, relative=False).within(bound_s) for plain, _, again in times)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead_short", description=__doc__
    )
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS")
    parser.add_argument("--no-bars", action="store_true", help="judge, but exit with 0")
    options = parser.parse_args()
    verdicts = run((1 - _CHECK_SHARE) * options.limit)
    check_whole(perf_counter() + _CHECK_SHARE * options.limit)
    print("\nbars")
    for judged, line in verdicts:
        print(f"  {judged:<12}{line}")
    return int(any(judged == "MISSED" for judged, _ in verdicts) and not options.no_bars)


if __name__ == "__main__":
    sys.exit(main())
