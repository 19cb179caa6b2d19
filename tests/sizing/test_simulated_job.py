"""A job of thousands, sized from the profile of one rank."""

from __future__ import annotations

import pytest

from pipeprof.errors import UsageError
from pipeprof.sizing.simulated_job import SIMULATED_JOB
from pipeprof.sizing.size import size
from pipeprof.sizing.sources import from_profile
from tests.analyze.test_scale import recorded
from tests.sizing.test_size import given

PROFILE = recorded(60)
"""Two workers, each 34 ms a batch, and a step of 10 ms: 59 % of the time is at work."""


def job(gpus: float, **more: float) -> dict[str, float]:
    inputs = from_profile(PROFILE, "run.json") | given(**more)
    sizing = size(inputs, gpus, simulate=True, profile=PROFILE)
    return {each.name: each.value for each in sizing.sections[SIMULATED_JOB]}


def test_what_the_time_goes_into_adds_up():
    found = job(8)
    assert found["job_utilisation"] == pytest.approx(10 / 17, rel=0.1)
    assert found["job_utilisation_low"] <= found["job_utilisation"] <= found["job_utilisation_high"]
    lost = sum(value for name, value in found.items() if name.startswith("job_lost"))
    assert found["job_utilisation"] + lost == pytest.approx(1)
    assert found["job_batches_per_s"] == pytest.approx(8 / 0.017, rel=0.1)


def test_a_storage_and_an_exchange_are_shown_where_they_are_known():
    assert not {"job_lost_to_storage", "job_lost_to_sync"} & job(8).keys()
    found = job(8, storage_bandwidth=8 * 1024 * 500 / 0.040, bytes_per_sample=500, sync_s=0.002)
    assert found["job_batches_per_s"] == pytest.approx(8 / 0.040, rel=0.01)
    assert found["job_lost_to_storage"] > 0.5
    assert found["job_lost_to_sync"] == pytest.approx(2 / 40, rel=0.01)


def test_a_profile_of_few_batches_shows_no_tail():
    few = recorded(20)
    with pytest.raises(UsageError, match="--simulate needs a profile that recorded at least 40"):
        size(from_profile(few, "run.json"), 8, simulate=True, profile=few)
