"""How a report words the gain and the cost of a recommended change."""

from __future__ import annotations

from dataclasses import replace

from pipeprof.model import Cost, Recommendation
from pipeprof.report.document.wording import expected, gain

PLAIN = Recommendation("num_workers", "2", "4", "why")


def test_what_is_unknown_is_left_out() -> None:
    assert expected(PLAIN) == []
    assert expected(replace(PLAIN, cost=Cost())) == []


def test_the_starved_fraction_the_cost_and_what_would_verify_it() -> None:
    advice = replace(
        PLAIN,
        predicted_starved=0.03,
        predicted_starved_interval=(0.01, 0.07),
        cost=Cost(cores=0.4, ram_bytes=120e6, shared_memory_bytes=20e6),
        settle="a short run with num_workers=4",
    )
    assert expected(advice) == [
        ("starved", "predicted 3.0 % (1.0–7.0 %)"),
        ("extra cost", "0.4 of a core, 120 MB of RAM, 20.0 MB of shared memory"),
        ("to verify", "a short run with num_workers=4"),
    ]
    assert expected(replace(PLAIN, cost=Cost(cores=1.5))) == [("extra cost", "1.5 cores")]


def test_without_a_prediction_the_range_is_reported() -> None:
    assert gain(PLAIN, 100.0) == "", "no setting to change: it names a lacking resource"
    assert gain(replace(PLAIN, code="…"), 100.0) == "not predicted"
    shorter = replace(PLAIN, code="…", predicted_epoch_saving=0.37)
    assert gain(shorter, 100.0) == "predicted 37 % less time an epoch"
    open_ = replace(PLAIN, interval=(100.0, 390.0))
    assert gain(open_, 100.0) == "between 100 and 390 samples/s"
    assert gain(replace(open_, predicted_samples_per_s=250.0), 100.0) == (
        "predicted 250 samples/s (100–390), +150 %"
    )
