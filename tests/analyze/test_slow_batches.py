"""Slow batches of one worker, and pauses that all workers share."""

from __future__ import annotations

import numpy as np
import pytest

from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.slow_batches import slow_batches


def columns(*rows: tuple[int, float, float]) -> Columns:
    """Of batches: worker, when it began to build it, and when it had."""
    worker, start, end = np.array(rows, dtype=float).T
    return Columns({"worker": worker, "fetch_start_s": start, "fetch_end_s": end})


def test_the_others_build_on_beside_one_slow_batch():
    found = slow_batches(columns((0, 0, 10), (1, 0, 1), (1, 1, 2), (1, 2, 3), (1, 9.5, 10.5)))
    assert found.mask.tolist() == [True, False, False, False, False]
    assert found.concurrent_s == pytest.approx(3.5)
    assert found.concurrent_slow_s == 0


def test_a_pause_stops_them_all():
    quick = [(worker, at, at + 1.0) for worker in (0, 1) for at in (20, 21, 22)]
    found = slow_batches(columns((0, 0, 10), (1, 1, 11), *quick))
    assert found.mask.sum() == 2
    assert found.concurrent_s == found.concurrent_slow_s == pytest.approx(18)


def test_what_is_not_known_is_not_slow():
    assert not slow_batches(columns((0, 0, np.nan))).mask.any()
