"""Compare orders of rows: what each costs, and how well it mixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from pipeprof.analyze.compare.ratios import difference, paired_ratio
from pipeprof.model import OrderRuns, RowOrders, Trial

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Mixing:
    """How an order mixes rows; see `OrderRuns`."""

    splits_per_batch: float
    neighbours: float


def evaluate_orders(
    runs: Mapping[str, Sequence[Trial]],
    mixing: Mapping[str, Mixing],
    splits: int,
    batch_size: int,
    impossible: tuple[str, ...] = (),
) -> RowOrders:
    """Return what orders cost by two or more runs of each.

    Args:
        runs: Order → its runs. Run n of one order was next to run n of the others. The first order
            has as many as any.
        mixing: Order → how it mixes.
        splits: See `RowOrders`, like the arguments that follow.
        batch_size: See `RowOrders`.
        impossible: See `RowOrders`.
    """
    reference = next(iter(runs.values()))
    return RowOrders(
        tuple(_of(order, own, reference, mixing[order]) for order, own in runs.items()),
        splits,
        batch_size,
        random_splits_per_batch(batch_size, splits),
        impossible,
    )


def _of(order: str, runs: Sequence[Trial], reference: Sequence[Trial], mixing: Mixing) -> OrderRuns:
    pairs = [
        (one.samples_per_s, other.samples_per_s)
        for one, other in zip(runs, reference, strict=False)
    ]
    speed, interval = (1.0, (1.0, 1.0)) if runs is reference else paired_ratio(pairs)
    return OrderRuns(
        order,
        fmean(run.samples_per_s for run in runs),
        fmean(run.starved_fraction for run in runs),
        fmean(run.bytes_per_sample for run in runs),
        mixing.splits_per_batch,
        mixing.neighbours,
        len(runs),
        speed,
        interval,
        difference(speed, interval),
    )


def mixing_of(batches: Sequence[tuple[Numbers, Numbers]]) -> Mixing:
    """Return how batches are mixed. Of each row a batch has the number of its split, and a number
    that is one higher for the next row of the file."""
    return Mixing(
        fmean(effective_splits(splits) for splits, _ in batches),
        fmean(float((np.diff(rows) == 1).mean()) if len(rows) > 1 else 0.0 for _, rows in batches),
    )


def effective_splits(numbers: Numbers) -> float:
    """Return from how many splits a batch draws, by the number of the split of each row: 1/Σp² for
    the shares p of the splits (the inverse of Simpson's index)."""
    _, counts = np.unique(numbers, return_counts=True)
    return float(len(numbers) ** 2 / (counts**2).sum())


def random_splits_per_batch(rows: int, splits: int) -> float:
    """Return `effective_splits` of a batch whose rows are drawn from ``splits`` equal splits: two
    of its rows are the same row with probability 1/rows, else in one split with 1/splits."""
    return 1 / (1 / rows + (1 - 1 / rows) / splits)
