"""A loop that takes batches from two loaders in each step: each profile is true of both."""

from time import perf_counter, sleep

import pytest
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Act

pytestmark = [
    pytest.mark.timed,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]

STEP_S, SAMPLE_S, BATCHES = 0.008, 0.005, 50


def trained(workers):
    """Return the profiles, and the share of the time without a step, by this loop's own clock."""
    loaders = [
        pipeprof.wrap(
            DataLoader(Act(lambda _: sleep(SAMPLE_S), 4 * BATCHES), 4, num_workers=workers),
            name=name,
            whole=True,
        )
        for name in ("images", "labels")
    ]
    ends = []
    for _ in zip(*loaders, strict=True):
        sleep(STEP_S)
        ends.append(perf_counter())
    cycle_s = (ends[-1] - ends[4]) / (len(ends) - 5)
    return [each.profile() for each in loaders], 1 - STEP_S / cycle_s


def test_the_accelerator_waits_for_both_and_both_must_be_cured():
    profiles, waiting = trained(1)
    advised = []
    for profile, other in zip(profiles, ("labels", "images"), strict=True):
        assert profile.diagnosis.starved_fraction == pytest.approx(waiting, abs=0.08)
        if profile.recommendations:  # one may have to wait for the other alone on a busy machine
            advice = profile.recommendations[0]
            assert advice.setting == "num_workers"
            assert f"It helps only as far as {other} can keep up" in advice.why
            advised.append(advice)
    cured, _ = trained(min(max(int(each.proposed) for each in advised), 4))
    for advice in advised:
        low, high = advice.interval
        for profile in cured:
            assert 0.75 * low < profile.throughput.samples_per_s < 1.25 * high
