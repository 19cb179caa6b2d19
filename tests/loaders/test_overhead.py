"""The profiler's overhead in a profile is the time of each hook × how often it ran."""

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.instrument import overhead
from pipeprof.loaders.instrument.overhead import measure_overhead
from pipeprof.measure.resource_sampler import SAMPLE_EVERY_S
from pipeprof.model import LoaderConfig
from tests.loaders.forms import SAMPLES, Marked

WORKER_S, INLINE_S, ONLY_TIMED_S, OTHER_S = 40e-6, 4e-6, 1e-6, 200e-6


@pytest.fixture
def known(monkeypatch):
    """Give each hook a known time."""
    monkeypatch.setattr(overhead, "_workers_s", lambda: WORKER_S)
    monkeypatch.setattr(overhead, "_inline_s", lambda: INLINE_S)
    monkeypatch.setattr(overhead, "_only_timed_s", lambda: ONLY_TIMED_S)
    monkeypatch.setattr(overhead, "_median_s", lambda call: OTHER_S)  # a sample, a request, stages


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("workers", "wall_s", "counts", "spent_s"),
    [
        (2, 1e6, {}, 1000 * (WORKER_S + OTHER_S)),
        (0, 1e6, {}, 1000 * (INLINE_S + OTHER_S)),
        (2, 1.0, {}, 1000 * WORKER_S + OTHER_S / SAMPLE_EVERY_S),
        (2, 1e6, {"only_timed": 5000}, 1000 * (WORKER_S + OTHER_S) + 5000 * ONLY_TIMED_S),
        (2, 1e6, {"requests": 300}, 1000 * (WORKER_S + OTHER_S) + 300 * OTHER_S),
        (2, 1e6, {"charges": 320}, 1000 * (WORKER_S + OTHER_S) + 20 * OTHER_S),
    ],
    ids=["workers", "inline", "many batches a sample", "only timed", "requests", "stages"],
)
def test_it_is_each_hook_times_how_often_it_ran(workers, wall_s, counts, spent_s):
    measured = measure_overhead(LoaderConfig(workers), wall_s, recorded=1000, **counts)
    assert measured.share == pytest.approx(spent_s / wall_s)
    assert measured.per_batch_s == pytest.approx(spent_s / (1000 + counts.get("only_timed", 0)))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_hooks_are_timed_for_real(workers):
    counts = dict.fromkeys(("recorded", "only_timed", "requests", "charges"), 1000)
    measured = measure_overhead(LoaderConfig(workers), 1e3, **counts)
    assert 0 < measured.per_batch_s < 0.1
    assert measured.share == pytest.approx(measured.per_batch_s * 2000 / 1e3)


def test_what_cannot_be_timed_is_unknown(monkeypatch):
    monkeypatch.setattr(overhead, "_workers_s", lambda: 1 / 0)
    measured = measure_overhead(LoaderConfig(2), 1.0, recorded=10)
    assert (measured.share, measured.per_batch_s) == (None, None)
    assert measured.method == "could not be timed: ZeroDivisionError"


LOADERS = {
    "workers": lambda: DataLoader(Marked(), 4, num_workers=1),
    "inline": lambda: DataLoader(Marked(), 4),
    "a list": lambda: [torch.zeros(4)] * 10,
}


@pytest.mark.parametrize("form", LOADERS)
def test_every_profile_states_it(form):
    loader = pipeprof.wrap(LOADERS[form]())
    assert loader.profile().overhead.share is None, "no batch was recorded"
    for _ in range(2):
        list(loader)
    measured, wall_s = loader.profile().overhead, loader._profiler._recorder.wall_s
    assert measured.per_batch_s > 0
    assert measured.share == pytest.approx(20 * measured.per_batch_s / wall_s)


class Parts(Marked):
    """Names three stages for each sample."""

    def __getitem__(self, index):
        for name in ("read", "decode", "transform"):
            with pipeprof.stage(name):
                pass
        return super().__getitem__(index)


SETTINGS = {
    "inline": {},
    "workers": {"num_workers": 2},
    "persistent": {"num_workers": 2, "persistent_workers": True},
}


@pytest.mark.parametrize("form", SETTINGS)
def test_each_stage_that_is_clocked_counts_in_each_epoch(form):
    loader = pipeprof.wrap(DataLoader(Parts(), 4, **SETTINGS[form]))
    for _ in range(6):
        list(loader)
    assert loader._profiler._start.requests.charges == 6 * SAMPLES * 3
    assert "each stage or read that was timed" in loader.profile().overhead.method
