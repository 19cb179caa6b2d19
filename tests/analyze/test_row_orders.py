"""What orders of rows cost and how they mix, against drawn rows and known rates."""

from __future__ import annotations

import numpy as np
import pytest

from pipeprof.analyze.sweep.row_orders import (
    Mixing,
    effective_splits,
    evaluate_orders,
    mixing_of,
    random_splits_per_batch,
)
from pipeprof.model import Trial
from tests.sweep_samples import sample_trial


def trials(*rates: float) -> list[Trial]:
    return [sample_trial("parquet", samples_per_s=rate) for rate in rates]


def test_a_batch_of_one_split_counts_as_one_and_an_even_one_as_many() -> None:
    assert effective_splits(np.zeros(64, np.int64)) == 1
    assert effective_splits(np.arange(64) % 8) == 8
    assert effective_splits(np.array([0, 0, 0, 1])) == pytest.approx(1 / (0.75**2 + 0.25**2))


@pytest.mark.parametrize(("rows", "splits"), [(16, 4), (256, 40), (64, 1000), (32, 1)])
def test_drawn_batches_have_the_splits_of_the_formula(rows: int, splits: int) -> None:
    random = np.random.default_rng(0)
    drawn = [effective_splits(random.integers(splits, size=rows)) for _ in range(2000)]
    # the mean of an inverse is a little above the inverse of the mean
    assert np.mean(drawn) == pytest.approx(random_splits_per_batch(rows, splits), rel=0.06)


def test_rows_in_the_order_of_the_file_are_neighbours() -> None:
    same = np.zeros(10, np.int64)
    assert mixing_of([(same, np.arange(10))]).neighbours == 1
    assert mixing_of([(same, np.arange(10)[::-1])]).neighbours == 0
    assert mixing_of([(same[:1], np.arange(1))]) == Mixing(1.0, 0.0)


def test_orders_are_compared_run_by_run_with_the_first() -> None:
    mixing = {"none": Mixing(1, 1), "buffer:100": Mixing(3, 0.1), "full": Mixing(9, 0)}
    measured = evaluate_orders(
        {
            "none": trials(100, 120, 80, 100),
            "buffer:100": trials(90, 108, 72, 90),
            "full": trials(1, 1.2),
        },
        mixing,
        splits=10,
        batch_size=64,
        impossible=("shards: no",),
    )
    none, buffer, full = measured.orders
    assert (none.speed, none.speed_interval, none.difference) == (1, (1, 1), "none")
    assert buffer.speed == pytest.approx(0.9)
    assert buffer.speed_interval == pytest.approx((0.9, 0.9)), "the machine's speed cancels out"
    assert buffer.difference == "slower"
    assert (full.speed, full.runs) == (pytest.approx(0.01), 2)
    assert [each.splits_per_batch for each in measured.orders] == [1, 3, 9]
    assert [each.neighbours for each in measured.orders] == [1, 0.1, 0]
    assert measured.random_splits_per_batch == random_splits_per_batch(64, 10)
    assert measured.impossible == ("shards: no",)
