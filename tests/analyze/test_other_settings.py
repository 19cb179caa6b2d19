"""Settings that a tuned loader tries: simulated from one run, and within the machine's limits."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pipeprof.analyze.assemble import what_to_try
from pipeprof.analyze.predict.workload import Setting
from pipeprof.model import MainProcess, Recording
from tests.analyze.pipelines import workers_run
from tests.analyze.runs import seen


def rates(recording: Recording) -> Mapping[Setting, float]:
    """Batches/s by setting. A batch takes 30 ms of a worker, and a step 5 ms."""
    return what_to_try(recording).simulated


def test_workers_that_wait_are_as_many_times_as_fast() -> None:
    found = rates(workers_run())  # two workers
    assert found[Setting(1, 2)] == pytest.approx(1 / 0.030, rel=0.1)
    assert found[Setting(4, 2)] == pytest.approx(4 / 0.030, rel=0.15)
    assert Setting(2, 2) not in found, "that is the run itself"
    assert Setting(2, 4) in found


def test_a_loader_that_feeds_the_accelerator_needs_nothing_else() -> None:
    assert rates(workers_run(fetch_s=0.002, step_s=0.020)) == {}


def test_workers_that_do_not_fit_into_memory_are_left_out() -> None:
    main = MainProcess(shared_memory_bytes=10**10, available_bytes=10**9)
    found = rates(seen(workers_run(), main, tensors=1, batch_bytes=1e6, private_bytes=100e6))
    assert max(each.num_workers for each in found) == 4, "half of it holds four of 100 MB"


def test_batches_that_do_not_fit_into_shared_memory_are_left_out() -> None:
    main = MainProcess(shared_memory_bytes=20 * 10**6, available_bytes=10**10)
    found = rates(seen(workers_run(), main, tensors=1, batch_bytes=1e6, private_bytes=1e6))
    assert max(each.in_flight for each in found) <= 9
