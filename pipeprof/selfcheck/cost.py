"""What profiling costs on this machine: plain, plain again and profiled, in random order, over and
over. Plain against plain shows how much of a difference is due to the machine."""

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
"""The highest upper end of the interval that is within the bar."""
QUIET = 0.005
"""How near to 0 both ends of the control's interval must lie, or the result is inconclusive."""

BATCH_S = 0.0015
BATCH_SIZE = 8
BATCHES, WARMUP = 120, 10
_LEAST_ROUNDS = 5
_RESAMPLES = 2000
_BLOCK = bytes(16384)


class Hashing(Dataset[float]):
    """A fixed amount of work a sample: for a fixed time it would hide what our hooks add."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks

    def __len__(self) -> int:
        return BATCHES * BATCH_SIZE

    def __getitem__(self, index: int) -> float:
        """CPU time that all threads of this process have used so far."""
        used_s = process_time()
        for _ in range(self._blocks):
            sha256(_BLOCK).digest()
        return used_s


def measure_cost(limit_s: float, seed: int = 0) -> ProfilerCost:
    """Repeat rounds for ``limit_s`` seconds, and at least `_LEAST_ROUNDS`."""
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
    """``rounds``: what a plain, another plain and a profiled run took. [rounds, 3]

    The median over rounds, and its 95 % interval by bootstrap: when something else keeps the
    machine busy during one run, that round says nothing.
    """
    plain, again, profiled = np.array(rounds, dtype=np.float64).T
    picks = np.random.default_rng(seed).integers(0, len(plain), size=(_RESAMPLES, len(plain)))

    def figure(ratio: Floats) -> tuple[float, tuple[float, float]]:
        low, high = np.percentile(np.median(ratio[picks], axis=1), [2.5, 97.5])
        return float(np.median(ratio)), (float(low), float(high))

    cost, interval = figure(2 * profiled / (plain + again) - 1)
    control, control_interval = figure(again / plain - 1)
    status: Bar = "within" if interval[1] <= BAR else "beyond"
    if max(map(abs, control_interval)) > QUIET:
        status = "inconclusive"
    return CostComparison(cost, interval, control, control_interval, status)


def _blocks_for(seconds: float) -> int:
    """How many blocks are hashed in ``seconds`` here and now."""
    times = []
    for _ in range(200):
        start = perf_counter()
        sha256(_BLOCK).digest()
        times.append(perf_counter() - start)
    return max(1, round(seconds / float(np.median(times))))


def _run(dataset: Hashing, profiled: bool) -> tuple[float, float]:
    """One epoch, of which the first `WARMUP` batches are left out. Seconds per batch: wall time,
    and CPU time of main and worker together."""
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
