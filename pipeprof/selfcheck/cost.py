"""Measure the overhead of profiling on this machine.

Each round has two plain runs and a profiled run, in random order. The two plain runs show how large
a difference the machine alone causes.
"""

from __future__ import annotations

from hashlib import sha256
from time import perf_counter, process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import DataLoader, Dataset

from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.selfcheck.results import Bar, CostComparison, ProfilerCost

Floats = npt.NDArray[np.float64]

BAR = 0.01
"""Highest upper end of the interval that counts as *within*."""
CONTROL_BAR = 0.005
"""Highest absolute end of the control's interval; beyond it the result is *inconclusive*."""

BATCH_S = 0.0015
BATCH_SIZE = 8
BATCHES, WARMUP = 120, 10
_LEAST_ROUNDS = 5
_RESAMPLES = 2000
_BLOCK = bytes(16384)


class Hashing(Dataset[float]):
    """A data set with a fixed amount of work per sample. With a fixed duration it would hide the
    time that our hooks add."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks

    def __len__(self) -> int:
        return BATCHES * BATCH_SIZE

    def __getitem__(self, index: int) -> float:
        """Return the CPU time that all threads of this process have used before this sample."""
        used_s = process_time()
        for _ in range(self._blocks):
            sha256(_BLOCK).digest()
        return used_s


def measure_cost(limit_s: float, seed: int = 0) -> ProfilerCost:
    """Run rounds for ``limit_s`` seconds, but at least `_LEAST_ROUNDS`."""
    dataset = Hashing(_blocks_for(BATCH_S / BATCH_SIZE))
    random = np.random.default_rng(seed)
    rounds: list[list[tuple[float, float]]] = []
    end = perf_counter() + limit_s
    while len(rounds) < _LEAST_ROUNDS or perf_counter() < end:
        spent = {variant: _run(dataset, variant == 2) for variant in random.permutation(3)}
        rounds.append([spent[0], spent[1], spent[2]])
    wall, cpu = np.moveaxis(np.array(rounds), 2, 0)
    return ProfilerCost(
        batch_s=float(np.median(wall[:, :2])),
        rounds=len(rounds),
        batches=BATCHES - WARMUP,
        wall=compare(wall),
        cpu=compare(cpu),
    )


def compare(rounds: npt.ArrayLike, seed: int = 0) -> CostComparison:
    """Compare what two plain runs and a profiled run took: ``rounds`` has the shape [rounds, 3].

    The figures are medians over rounds with 95 % bootstrap intervals: a round in which another
    process disturbs one run must not decide.
    """
    plain, again, profiled = np.array(rounds, dtype=np.float64).T
    picks = np.random.default_rng(seed).integers(0, len(plain), size=(_RESAMPLES, len(plain)))

    def figure(ratio: Floats) -> tuple[float, tuple[float, float]]:
        low, high = np.percentile(np.median(ratio[picks], axis=1), [2.5, 97.5])
        return float(np.median(ratio)), (float(low), float(high))

    cost, interval = figure(2 * profiled / (plain + again) - 1)
    control, control_interval = figure(again / plain - 1)
    status: Bar = "within" if interval[1] <= BAR else "beyond"
    if max(map(abs, control_interval)) > CONTROL_BAR:
        status = "inconclusive"
    return CostComparison(cost, interval, control, control_interval, status)


def _blocks_for(seconds: float) -> int:
    """Return how many blocks this machine hashes in ``seconds`` at present."""
    times = []
    for _ in range(200):
        start = perf_counter()
        sha256(_BLOCK).digest()
        times.append(perf_counter() - start)
    return max(1, round(seconds / float(np.median(times))))


def _run(dataset: Hashing, profiled: bool) -> tuple[float, float]:
    """Run one epoch without its first `WARMUP` batches. Return seconds per batch: wall time, and
    CPU time of the main process and the worker together."""
    loader: Any = DataLoader(dataset, batch_size=BATCH_SIZE, num_workers=1)
    if profiled:
        loader = wrap(loader)
    start_s = main_s = worker_s = end_s = 0.0
    for number, batch in enumerate(loader, start=1):
        if number == WARMUP:
            start_s, main_s, worker_s = perf_counter(), process_time(), float(batch[0])
        if number == BATCHES:
            end_s = perf_counter()
            main_s, worker_s = process_time() - main_s, float(batch[0]) - worker_s
    count = BATCHES - WARMUP
    return (end_s - start_s) / count, (main_s + worker_s) / count
