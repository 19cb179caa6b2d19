"""Ranks of a job record the same steps, so that their steps can be put side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pipeprof.loaders.instrument.inline_observer import InlineObserver
from pipeprof.loaders.instrument.sampling import (
    COST_S,
    INLINE_COST_S,
    SamplingSchedule,
    recorded_per_s,
    window_of_ranks,
)
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.ring import Ring

BATCHES = 3_000
RANKS = 8
CAPACITY = 4


def inline() -> Any:
    observer = InlineObserver.__new__(InlineObserver)
    observer.window_end = 0
    vars(observer).update(reports_stages=lambda: False, set_active=bool)
    return observer


def workers() -> Any:
    observer = WorkerObserver.__new__(WorkerObserver)
    vars(observer).update(
        ring=Ring(slots=8), workers=2, capacity=CAPACITY, may_pause=True, set_active=bool,
        record_from_next_task=bool,
    )  # fmt: skip
    return observer


def recorded(observer: Any, cycles_s: list[float], is_rank: bool) -> Iterator[int]:
    """Yield the batches that a rank records in full, whose steps last so long."""
    clock = FakeClock()
    schedule = SamplingSchedule(clock=clock)
    schedule.is_rank = is_rank
    clock.sleep(random.uniform(0, 3))  # it is ready later than others
    if isinstance(observer, WorkerObserver):
        schedule.begin_pass(observer.ring, CAPACITY)
    on, until_check = schedule.start(observer, SimpleNamespace(_rcvd_idx=0)), 1
    for batch, cycle_s in enumerate(cycles_s):
        if on:
            yield batch
        clock.sleep(cycle_s)
        until_check -= 1
        if not until_check:
            iterator = SimpleNamespace(_rcvd_idx=batch + 1, _send_idx=batch + 1 + CAPACITY)
            on, until_check = schedule.check(observer, iterator, on, batch + 1)


def shares(made: Any, cycle_s: float, is_rank: bool) -> tuple[float, float]:
    """The share of the batches that a rank records, and the share that all of them do."""
    random.seed(1)
    steps_s = [random.lognormvariate(0, 0.3) * cycle_s for _ in range(BATCHES)]
    ranks = [
        set(recorded(made(), [step_s * random.uniform(0.98, 1.02) for step_s in steps_s], is_rank))
        for _ in range(RANKS)
    ]
    return sum(map(len, ranks)) / RANKS / BATCHES, len(set.intersection(*ranks)) / BATCHES


@pytest.mark.parametrize("cycle_s", [0.001, 0.003, 0.005, 0.008, 0.012, 0.02])
@pytest.mark.parametrize(("made", "cost_s"), [(inline, INLINE_COST_S), (workers, COST_S)])
def test_they_record_nearly_the_same_batches(made: Any, cost_s: float, cycle_s: float) -> None:
    one, common = shares(made, cycle_s, is_rank=True)
    assert common > 0.8 * one
    assert one > 0.4 * min(1.0, recorded_per_s(cost_s) * cycle_s)
    assert one < 1.1 * recorded_per_s(cost_s) * cycle_s + 64 / BATCHES


def test_others_would_hardly_have_one_in_common() -> None:
    one, common = shares(workers, 0.005, is_rank=False)
    assert common < 0.1 * one


def test_windows_of_a_longer_period_are_among_those_of_a_shorter_one() -> None:
    shorter = {window_of_ranks(task, 0.5, 16)[0] for task in range(5, 4096)}
    longer = {window_of_ranks(task, 0.2, 16)[0] for task in range(5, 4096)}
    assert len(longer) < len(shorter)
    assert {first for first in longer if first % 128 == 0} <= shorter
