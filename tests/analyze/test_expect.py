"""When a prediction of one run is a number, and when only a range: on simulated runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.analyze.advice.expected_gain import expected
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.predict.workload import Demand, Machine
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.storage_bottleneck import storage_bound
from pipeprof.analyze.profile.verdict import diagnose
from pipeprof.model import Recommendation
from tests.analyze.pipelines import workers_run
from tests.analyze.test_one_run import from_one, sent
from tests.analyze.test_predict import batches

ADVICE = Recommendation("num_workers", "2", "4", "why")


def of(demands: list[Demand]) -> Facts:
    """Facts of a starved run, and to predict from, such batches."""
    recording = workers_run()
    summary = Summary(recording.warmup_batches)
    summary.add(Columns.of(recording.batches))
    storage = storage_bound(summary, None, recording.lone_requests, None)
    facts = Facts(recording, summary, diagnose(summary, summary.ranked_blame(), 0.05, storage))
    vars(facts)["one_run"] = from_one(demands[:120], Machine(cores=16))
    return facts


def test_a_number_with_its_interval() -> None:
    told = expected(of(sent(batches(latency_s=0.02))), ADVICE, 4)
    assert told.interval is not None
    assert told.predicted_samples_per_s == pytest.approx(sum(told.interval) / 2, rel=0.1)
    assert told.settle is None


def test_where_hand_shakes_are_all_that_main_does_a_range_and_what_would_settle_it() -> None:
    facts = of(sent(batches(cpu_s=0.004), receive_s=0.02))
    told = expected(facts, ADVICE, 4)
    assert told.predicted_samples_per_s is told.predicted_starved is None
    assert told.interval is not None
    low, high = told.interval
    assert high > 1.8 * low
    assert told.settle == (
        "a short run with num_workers=4: pipeprof run --set num_workers=4 train.py"
    )
    assert "The training process does little but receive batches" in told.why
    same = expected(facts, replace(ADVICE, proposed="2"), 2)
    assert same.predicted_samples_per_s, "as many as were measured tell what it takes"
