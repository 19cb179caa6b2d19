"""Data sets of a sweep as multiples of the first one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeprof.analyze.sweep.multiples import with_multiples
from pipeprof.analyze.sweep.recommend import choose
from pipeprof.model import Multiple, Trial
from tests.sweep_samples import sample_sweep, sample_trial

SPEC = sample_sweep().spec
STEADY = {"csv": 0.01, "parquet": 0.01}


def trials(csv: float, parquet: float) -> list[Trial]:
    return [
        replace(
            sample_trial(name, samples_per_s=rate, starved=0.5),
            url=name,
            interval=(0.98 * rate, 1.02 * rate),
            own_interval=(0.98 * rate, 1.02 * rate),
            cpu_s_per_sample=cpu_s,
        )
        for name, rate, cpu_s in (("csv", csv, 0.002), ("parquet", parquet, 0.001))
    ]


def multiple(csv: float, parquet: float, noise: dict[str, float]) -> Multiple:
    tried = trials(csv, parquet)
    first, second = with_multiples(choose(tried, SPEC), tried, noise)
    assert first.against_first is None
    assert second.against_first is not None
    return second.against_first


def test_the_second_data_set_as_a_multiple_of_the_first() -> None:
    found = multiple(1000, 1500, STEADY)
    assert found.speed == pytest.approx(1.5)
    assert found.interval == pytest.approx((1.455, 1.547), abs=0.01)
    assert (found.difference, found.cpu) == ("faster", 0.5)
    assert multiple(1500, 1000, STEADY).difference == "slower"


def test_runs_that_differ_more_widen_the_interval() -> None:
    found = multiple(1000, 1200, {"csv": 0.01, "parquet": 0.3})
    assert found.difference == "none"
    assert found.interval[0] < 1 < 1.5 < found.interval[1]


def test_one_data_set_has_no_multiple() -> None:
    [tried, _] = trials(1000, 1200)
    [advice] = with_multiples(choose([tried], SPEC), [tried], STEADY)
    assert advice.against_first is None
