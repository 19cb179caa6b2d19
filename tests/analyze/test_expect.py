"""When a prediction of one run is a number, and when only a range: on simulated runs."""

from __future__ import annotations

import pytest

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.more_workers import by_simulation
from pipeprof.analyze.assemble import in_words
from pipeprof.analyze.predict.workload import Demand, Machine
from pipeprof.analyze.profile.batch_table import Columns
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.storage_bottleneck import storage_bound
from pipeprof.analyze.profile.verdict import diagnose
from pipeprof.model import Recommendation
from tests.analyze.pipelines import workers_run
from tests.analyze.test_one_run import from_one, sent
from tests.analyze.test_predict import batches


def to_set(workers: int, demands: list[Demand]) -> Recommendation:
    """What a starved run advises, which is predicted from such batches."""
    recording = workers_run()
    summary = Summary(recording.warmup_batches)
    summary.add(Columns.of(recording.batches))
    storage = storage_bound(summary, None, recording.lone_requests, None)
    blame = summary.charges.ranked_blame()
    facts = Facts(recording, summary, diagnose(summary, blame, 0.05, storage))
    run = from_one(demands[:120], Machine(cores=16))
    return in_words(by_simulation(facts, run, workers), facts)


def test_a_number_with_its_interval() -> None:
    advice = to_set(4, sent(batches(latency_s=0.02)))
    assert advice.interval is not None
    assert advice.predicted_samples_per_s == pytest.approx(sum(advice.interval) / 2, rel=0.1)
    assert advice.settle is None


def test_where_hand_shakes_are_all_that_main_does_a_range_and_what_would_settle_it() -> None:
    demands = sent(batches(cpu_s=0.004), receive_s=0.02)
    advice = to_set(4, demands)
    assert advice.predicted_samples_per_s is advice.predicted_starved is None
    assert advice.interval is not None
    low, high = advice.interval
    assert high > 1.8 * low
    assert advice.settle == (
        "a short run with num_workers=4: pipeprof run --set num_workers=4 train.py"
    )
    assert "The training process does little but receive batches" in advice.why
    same = to_set(2, demands)
    assert same.predicted_samples_per_s, "as many as were measured tell what it takes"
