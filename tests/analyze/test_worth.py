"""What each cost is worth, of made-up runs whose answer can be worked out."""

from __future__ import annotations

from math import isfinite, nan

import pytest

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.model import MainProcess
from tests.analyze.pipelines import inline_run, workers_run
from tests.analyze.runs import seen

MAIN = MainProcess(cpu_s=0.1, wall_s=10.0)


def test_without_workers_a_turn_is_shorter_by_what_is_cut():
    profile = assemble(inline_run())
    # 4 ms of reading, 8 of decoding, 2 of collating, 1 else, and a step of 10
    decode, read = profile.worth["decode"], profile.worth["read"]
    assert decode.cheaper.share == pytest.approx(25 / 23 - 1)
    assert decode.free.share == pytest.approx(25 / 17 - 1)
    assert read.cheaper.share == pytest.approx(25 / 24 - 1)
    low, high = decode.cheaper.interval
    assert 0 < low < decode.cheaper.share < high


def test_workers_that_are_too_slow_are_faster_by_what_is_cut():
    """Half of a batch is read, a quarter decoded; the worker waits in both, nothing is shared."""
    profile = assemble(seen(workers_run(200), main=MAIN, runqueue_s=0.0))
    assert profile.worth["fetch"].cheaper.share == pytest.approx(1 / (1 - 0.25 / 4) - 1, abs=0.03)
    assert profile.worth["decode"].cheaper.share == pytest.approx(1 / (1 - 0.25 / 4) - 1, abs=0.03)
    assert "transfer" not in profile.worth, "a worker already makes the next batch meanwhile"


def test_a_free_cost_is_worth_no_more_than_what_is_next():
    """Without fetch there is still the step of 5 ms, and receiving."""
    profile = assemble(seen(workers_run(200, cpu_share=0.0), main=MAIN, runqueue_s=0.0))
    for worth in profile.worth.values():
        assert worth.free.share <= 15 / 5 - 1 + 0.05


def test_where_nothing_stalls_nothing_is_worth_anything():
    assert assemble(workers_run(step_s=0.050)).worth == {}


def test_causes_are_in_the_order_of_blame():
    profile = assemble(seen(workers_run(200), main=MAIN, runqueue_s=0.0))
    assert list(profile.worth) == [cause for cause in profile.blame if cause in profile.worth]


def test_cores_are_worth_what_computing_is():
    profile = assemble(
        seen(workers_run(200, workers=2, cpu_share=0.5), main=MAIN, runqueue_s=0.012)
    )
    assert profile.diagnosis.bottleneck in ("worker-cpu", "fetch")
    assert profile.worth["worker-cpu"].cheaper.share > 0.05


def test_what_cores_are_worth_is_unknown_where_no_batch_was_sampled(monkeypatch):
    """A trial without workers may be so short that only its warm-up has a sample."""
    run = seen(inline_run(), main=MAIN, runqueue_s=0.002)
    assert "worker-cpu" in assemble(run).worth
    monkeypatch.setattr(Summary, "cpu_per_batch", lambda self: nan)
    profile = assemble(run)
    assert "worker-cpu" in profile.blame
    assert "worker-cpu" not in profile.worth
    assert isfinite(profile.worth["decode"].cheaper.share)
