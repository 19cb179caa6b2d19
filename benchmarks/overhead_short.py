"""Measures what profiling costs short runs: epochs of few batches, with start and end of workers.

    python -m benchmarks.overhead_short [--limit SECONDS] [--no-bars]

Epochs without a profiler, with pipeprof, and again without one alternate in random order. Each has
a loader of its own, and each process runs several rounds.
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
from benchmarks.overhead_stats import Floats, Verdict, added, judge, say

BATCHES = 200
"""Batches per epoch."""
BATCHES_S = (0.0005, 0.0015, 0.005)
_ARMS = ("plain", "pipeprof", "plain again")
_MEASURES = ("wall", "CPU")
_ROUNDS = 12
"""Rounds per process. The first one is discarded."""
_MOST, _QUIET = 0.01, 0.005


class Short(Work):
    """The samples of one epoch."""

    def __len__(self) -> int:
        return BATCHES * BATCH_SIZE


def measure(batch_s: float, end: float) -> Floats:
    """Return the seconds of epochs by [`_MEASURES`, `_ARMS`, processes, rounds]. It measures until
    ``end``, or until the two plain arms differ little enough."""
    data, sessions = Short(repeats(batch_s)), []
    while not sessions or (perf_counter() < end and not _quiet(_stacked(sessions))):
        fork = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, mp_context=fork) as child:
            sessions.append(child.submit(_session, data, len(sessions)).result())
    return _stacked(sessions)


def run(seconds: float) -> list[tuple[Verdict, str]]:
    """Measure, print a table, and return the verdicts."""
    end, verdicts = perf_counter() + seconds, []
    print(f"\nwhole epochs of {BATCHES} batches, 1 worker")
    print(f"  {'about, a batch':<16}{'':>5}{'an epoch':>10}   {'pipeprof':<28}plain again")
    for left, batch_s in enumerate(reversed(BATCHES_S)):
        times = measure(batch_s, perf_counter() + (end - perf_counter()) / (len(BATCHES_S) - left))
        for name, (plain, ours, again) in zip(_MEASURES, times, strict=True):
            cost = added(ours, plain, again, relative=True)
            control = added(again, plain, relative=True)
            what = f"{1e3 * batch_s:g} ms"
            print(
                f"  {what:<16}{name:>5}{1e3 * np.median(plain):>7.0f} ms   "
                f"{say(cost, relative=True):<28}{say(control, relative=True)}   "
                f"{plain.size:,} rounds", flush=True,
            )  # fmt: skip
            line = f"{BATCHES} batches of {what}, start and end too: {name}, at most +1 %: "
            verdicts.append((judge(cost, control, _MOST, _QUIET), line + say(cost, relative=True)))
    return verdicts


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


def _quiet(times: Floats) -> bool:
    return all(added(again, plain, relative=True).within(_QUIET) for plain, _, again in times)


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
