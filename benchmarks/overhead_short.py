"""Measures what profiling costs short runs: epochs of few batches, with start and end of workers.

    python -m benchmarks.overhead_short [--limit SECONDS] [--no-bars]

Starting a worker takes longer by chance than profiling costs. So the epochs that are compared have
only as many batches as are recorded from the start: epochs without a profiler, with pipeprof, and
again without one alternate in random order. Each has a loader of its own, and each process runs
several rounds.

What an epoch of 200 batches costs follows. Each further batch is only timed, for at most 2 µs, and
later records may cost 0.2 % of the run's time; both are bars of `benchmarks.overhead`.
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
from benchmarks.overhead_cases import BATCH_SIZE, Work, repeats
from benchmarks.overhead_stats import Estimate, Floats, Verdict, added, judge, say

RECORDED = 24
"""Batches of the epochs that are compared. The first window of records ends before."""
BATCHES = 200
"""Batches of the epochs whose cost is evaluated."""
BATCHES_S = (0.0005, 0.0015, 0.005)
_TIMED_S, _LATER_SHARE = 2e-6, 0.002
"""Most seconds that a further batch costs, and most of the run's time that later records cost."""
_ARMS = ("plain", "pipeprof", "plain again")
_MEASURES = ("wall", "CPU")
_ROUNDS = 25
"""Rounds per process. The first one is discarded."""
_MOST, _QUIET = 0.01, 0.002
_EPOCHS = 5
"""Epochs of `BATCHES` batches from which their length is known."""


class Short(Work):
    """The samples of one epoch."""

    def __init__(self, repeats: int, batches: int) -> None:
        super().__init__(repeats)
        self._batches = batches

    def __len__(self) -> int:
        return self._batches * BATCH_SIZE


def measure(end: float, quiet_s: float) -> Floats:
    """Return the seconds of short epochs by [`_MEASURES`, `_ARMS`, processes, rounds]. It measures
    until ``end``, or until the two plain arms differ by less than ``quiet_s``."""
    data, sessions = Short(repeats(BATCHES_S[0]), RECORDED), []
    while not sessions or (perf_counter() < end and not _quiet(_stacked(sessions), quiet_s)):
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, mp_context=fork) as child:
            sessions.append(child.submit(_session, data, len(sessions)).result())
    return _stacked(sessions)


def run(seconds: float) -> list[tuple[Verdict, str]]:
    """Measure, print a table, and return the verdicts."""
    end = perf_counter() + seconds
    epochs_s = {batch_s: _epoch_s(batch_s) for batch_s in BATCHES_S}
    times = measure(end, _QUIET * min(map(min, epochs_s.values())))
    print(f"\nepochs of {RECORDED} batches of {_ms(BATCHES_S[0])}, 1 worker, start and end too")
    costs = {}
    for name, (plain, ours, again) in zip(_MEASURES, times, strict=True):
        cost = added(ours, plain, again, relative=False)
        control = added(again, plain, relative=False)
        costs[name] = cost, control
        print(
            f"  {name:<6}{_ms(float(np.median(plain)))}   pipeprof {say(cost, relative=False)}   "
            f"plain again {say(control, relative=False)}   {plain.size:,} rounds"
        )
    print(f"\nof epochs of {BATCHES} batches, the {BATCHES - RECORDED} further ones at "
          f"{_TIMED_S * 1e6:g} µs and {_LATER_SHARE:.1%}")  # fmt: skip
    verdicts = []
    for batch_s, lengths_s in epochs_s.items():
        for name, epoch_s in zip(_MEASURES, lengths_s, strict=True):
            cost, control = (_share(each, epoch_s) for each in costs[name])
            more = _TIMED_S * (BATCHES - RECORDED) / epoch_s + _LATER_SHARE
            whole = Estimate(*(each + more for each in (cost.middle, cost.low, cost.high)))
            line = f"{_ms(batch_s)} a batch, {_ms(epoch_s)} an epoch: {name}, at most +1 %: "
            verdict = judge(whole, control, _MOST, _QUIET)
            verdicts.append((verdict, line + say(whole, relative=True)))
    return verdicts


def _share(cost: Estimate, epoch_s: float) -> Estimate:
    return Estimate(*(each / epoch_s for each in (cost.middle, cost.low, cost.high)))


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _epoch_s(batch_s: float) -> tuple[float, ...]:
    """Return the usual seconds of a plain epoch of `BATCHES` batches, by `_MEASURES`."""
    data = Short(repeats(batch_s), BATCHES)
    times = [_epoch(data, profiled=False) for _ in range(_EPOCHS)]
    return tuple(map(float, np.median(times, axis=0)))


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


def _quiet(times: Floats, bound_s: float) -> bool:
    return all(added(again, plain, relative=False).within(bound_s) for plain, _, again in times)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.overhead_short", description=__doc__
    )
    parser.add_argument("--limit", type=float, default=900.0, metavar="SECONDS")
    parser.add_argument("--no-bars", action="store_true", help="judge, but exit with 0")
    options = parser.parse_args()
    verdicts = run(options.limit)
    print("\nbars")
    for judged, line in verdicts:
        print(f"  {judged:<12}{line}")
    return int(any(judged == "MISSED" for judged, _ in verdicts) and not options.no_bars)


if __name__ == "__main__":
    sys.exit(main())
