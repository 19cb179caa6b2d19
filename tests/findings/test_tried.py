"""Six pipelines, five of them starved, each for a reason of its own: each gets another diagnosis
and another cure, and the cure is tried. More workers are advised to the two whom they help."""

import warnings
from functools import partial

import pytest
import torch

from pipeprof.model import Profile
from tests.findings.known import (
    advises_more_workers,
    burn,
    codes,
    faster,
    nap,
    on_cores,
    profiled,
    rate,
    settings_of,
)

pytestmark = pytest.mark.timed

CAUSES = {
    "workers-wait", "storage-wait", "compute-bound", "decode-bound", "cpu-oversubscribed",
    "head-of-line", "many-small-tensors", "in-memory-data",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    """torch warns of more workers than cores: that is the point."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


def cause(profile: Profile) -> set[str]:
    assert profile.diagnosis.verdict == "starved"
    return codes(profile) & CAUSES


def test_storage_that_answers_late_needs_more_workers():
    fetch = partial(nap, 0.020)
    now = {"num_workers": 1}
    profile = profiled(60, fetch, 0.010, **now)
    assert cause(profile) == {"workers-wait"}
    (advice,) = profile.recommendations
    assert advice.setting == "num_workers"
    assert int(advice.proposed) in (2, 3)
    assert "blocked" in profile.diagnosis.headline
    assert faster(1.3, 50, fetch, 0.010, now, settings_of(advice))


def test_decoding_with_a_core_to_spare_needs_one_more_worker():
    decode = partial(burn, 0.012)
    now = {"num_workers": 1}
    with on_cores(2) as cores:
        profile = profiled(80, decode, 0.002, **now)
        assert cause(profile) == {"compute-bound"}
        advice, *_ = profile.recommendations
        if cores == 1:
            assert not advises_more_workers(profile)
            return
        assert (advice.setting, advice.proposed) == ("num_workers", "2")
        assert faster(1.1, 60, decode, 0.002, now, settings_of(advice))


def test_more_workers_than_cores_need_no_more_of_them():
    decode = partial(burn, 0.010)
    now = {"num_workers": 6}
    with on_cores(2) as cores:
        profile = profiled(240, decode, 0.001, **now)
        assert cause(profile) == {"cpu-oversubscribed"}
        assert not advises_more_workers(profile)
        fewer, *others = profile.recommendations
        assert fewer.setting == "num_workers"
        assert int(fewer.proposed) <= cores
        assert others[0].setting == "cores"
        # wide margins: where other processes want the cores too, more workers get more of them
        assert faster(0.7, 80, decode, 0.001, now, settings_of(fewer))
        assert faster(0.7, 80, decode, 0.001, {"num_workers": 10}, now)


def test_one_slow_batch_in_twenty_must_not_hold_up_the_rest():
    def fetch(index):
        return nap(0.200 if index % 20 == 7 else 0.005, index)

    now = {"num_workers": 2}
    profile = profiled(120, fetch, 0.010, **now)
    assert cause(profile) == {"head-of-line"}
    order, prefetch = profile.recommendations
    assert (order.setting, order.proposed) == ("in_order", "False")
    assert prefetch.setting == "prefetch_factor"
    assert not advises_more_workers(profile)
    for advice, times in ((order, 1.3), (prefetch, 1.2)):
        assert faster(times, 60, fetch, 0.010, now, {**now, **settings_of(advice)})


def test_two_hundred_tiny_tensors_are_packed_or_made_where_they_are_used():
    def fetch(index):
        return {f"field {number}": torch.zeros(2) for number in range(200)}

    now = {"num_workers": 2}
    profile = profiled(30, fetch, 0.010, **now)
    assert cause(profile) == {"many-small-tensors"}
    # where each tensor takes long, a core more helps, too, but that cannot be tried
    tried = [advice for advice in profile.recommendations if advice.setting != "cores"]
    assert {advice.setting for advice in tried} == {"collate_fn", "num_workers"}
    assert not advises_more_workers(profile)
    assert "of 200 tensors" in profile.diagnosis.headline
    for advice in tried:
        assert faster(1.5, 12, fetch, 0.010, now, {**now, **settings_of(advice)})


def test_handing_over_single_samples_needs_larger_batches():
    """A step takes as many times as long as its batch is larger."""
    fetch, step_s = partial(nap, 0.004), 0.0015
    now = {"num_workers": 4}
    profile = profiled(400, fetch, step_s, **now)
    assert profile.diagnosis.verdict == "starved"
    (advice,) = profile.recommendations
    if advice.setting == "transfer":  # the same cure, without a size that would be a guess
        assert "larger batches" in advice.proposed
        return
    assert (advice.setting, advice.current) == ("batch_size", "1")
    size = int(advice.proposed)
    assert 4 <= size <= 40
    assert advice.predicted_starved < 0.06
    # wide margins: what handing over takes differs by half
    assert any(
        size * rate(60 * size, fetch, size * step_s, batch_size=size, **now)
        >= 0.85 * advice.predicted_samples_per_s
        for _ in range(5)
    )
    assert advice.predicted_samples_per_s > 1.15 * profile.throughput.samples_per_s


def test_nothing_is_advised_to_the_one_that_is_fed():
    # after a sleep both processes wake late: some machines take 8 ms to hand over a batch then
    profile = profiled(25, partial(nap, 0.010), 0.100, num_workers=2, threshold=0.2)
    assert profile.diagnosis.verdict == "fed"
    assert profile.recommendations == ()
    assert codes(profile) == set()
