"""A setting is as good as the best, or not, or the runs differ too much to tell."""

from __future__ import annotations

from math import log

import pytest

from benchmarks.steady_settings import interval_of, is_within, middle


@pytest.mark.parametrize(
    ("slower", "good"),
    [
        ((0.01, 0.0, 0.01, 0.02), True),
        ((0.10, 0.11, 0.09, 0.10), False),
        ((0.20, -0.10, 0.15, -0.05), None),
    ],
)
def test_three_per_cent_are_decided_where_runs_agree(
    slower: tuple[float, ...], good: bool | None
) -> None:
    logs = [log(1 + each) for each in slower]
    assert is_within(logs) is good
    low, high = interval_of(logs)
    assert low < middle(logs) < high


def test_one_pair_of_runs_decides_nothing() -> None:
    assert is_within([0.5]) is None
