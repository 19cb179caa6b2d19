"""Loaders so fast that recording each batch would cost too much: windows are recorded, in full."""

import sys
import time
from multiprocessing import queues, reduction

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

import pipeprof
from pipeprof.loaders.instrument.sampling import (
    CHECK_EVERY,
    LONGEST,
    SamplingBudget,
    shortest_window,
)
from pipeprof.measure.clock import FakeClock

pytestmark = pytest.mark.usefixtures("no_device")

BATCHES = 2_600
MANY = 1_007


class Quick(Dataset):
    """Returns numbers, which are sent faster than tensors."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        return index


class Named(Quick):
    """Names a stage, so that each batch counts."""

    def __getitem__(self, index):
        with pipeprof.stage("decode"):
            return index


def recorded_of(cycle_s: float, batches: int) -> int:
    """Return how many of ``batches`` are recorded at ``cycle_s`` each, with two prefetched."""
    clock, length = FakeClock(), shortest_window(2)
    budget = SamplingBudget(clock)
    assert budget.begin(length), "a run begins with a window"
    recorded = length
    while clock.now() < cycle_s * batches:
        clock.sleep(cycle_s * length)
        if budget.take(length):
            recorded += length
    return recorded


@pytest.mark.parametrize(
    ("cycle_s", "most", "least"), [(0.04, 1.0, 0.95), (0.005, 0.15, 0.13), (0.0005, 0.016, 0.013)]
)
def test_the_faster_the_batches_the_fewer_are_recorded(cycle_s, most, least):
    assert least * 10_000 <= recorded_of(cycle_s, 10_000) <= most * 10_000 + 2 * shortest_window(2)


def test_of_a_short_run_there_is_one_window():
    assert recorded_of(0.0005, 200) == recorded_of(0.0015, 100) == shortest_window(2)


def test_what_a_pause_saves_up_is_spent_on_a_few_windows_only():
    clock = FakeClock()
    budget = SamplingBudget(clock)
    assert budget.begin(16)
    assert not budget.take(16)
    clock.sleep(3_600.0)
    assert sum(budget.take(LONGEST) for _ in range(9)) == 2


def test_the_budget_says_when_it_pays_for_the_next_window():
    clock = FakeClock()
    budget = SamplingBudget(clock)
    assert budget.begin(16)
    clock.sleep(0.1)
    assert not budget.take(16)
    until_s = budget.seconds_until(16)
    clock.sleep(0.99 * until_s)
    assert not budget.take(16)
    clock.sleep(0.02 * until_s)
    assert budget.take(16)


def test_windows_get_longer_but_not_without_end():
    clock = FakeClock()
    budget = SamplingBudget(clock)
    budget.begin(16)
    lengths = []
    for _ in range(20):
        lengths.append(budget.next_length(16))
        clock.sleep(100.0)
        assert budget.take(lengths[-1])
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (16, LONGEST)
    assert budget.next_length(300) == 300, "never shorter than its ends are long"


class Watched(IterableDataset):
    """Yields whether the worker has hooks of ours, outside its own code."""

    def __iter__(self):
        frame = sys._getframe()
        while frame.f_code.co_name != "_worker_loop":
            frame = frame.f_back
        for _ in range(BATCHES):
            results, fetcher = frame.f_locals["data_queue"], frame.f_locals["fetcher"]
            yield bool(
                {"put", "fetch"} & (vars(results).keys() | vars(fetcher).keys())
                or queues._ForkingPickler is not reduction.ForkingPickler
            )


def test_between_windows_a_worker_runs_as_without_us():
    loader = pipeprof.wrap(DataLoader(Watched(), 4, num_workers=2))
    hooked = np.array([bool(batch.any()) for batch in loader])
    batches = loader.profile().batches
    recorded = np.zeros(len(hooked), dtype=bool)
    recorded[list(batches.nth)] = True
    assert not recorded.all()
    assert hooked[recorded].all()
    assert hooked[~recorded].mean() < 0.1


@pytest.mark.parametrize("kept", [False, True], ids=["new workers", "persistent"])
def test_what_is_recorded_is_recorded_in_full_and_every_batch_comes(kept):
    loader = pipeprof.wrap(DataLoader(Quick(), None, num_workers=2, persistent_workers=kept))
    for _ in range(2):
        assert list(loader) == list(range(BATCHES))
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES, BATCHES]
    assert profile.measured_batches + profile.warmup_batches == 2 * BATCHES
    assert shortest_window(4) <= len(profile.batches.index) < BATCHES
    assert profile.lost_records == 0
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    assert profile.overhead.share is not None
    [note] = profile.notes
    assert note.startswith(f"Of {2 * BATCHES:,} batches ")
    # a run's beginning is recorded, and a window is whole
    epochs, nth = np.array(profile.batches.epoch), np.array(profile.batches.nth)
    assert nth[: shortest_window(4)].tolist() == list(range(shortest_window(4)))
    windows = np.split(nth, np.flatnonzero((np.diff(nth) != 1) | (np.diff(epochs) != 0)) + 1)
    assert all(len(window) >= shortest_window(4) for window in windows[:-1])


def test_without_workers_windows_are_recorded_too_and_every_batch_comes():
    loader = pipeprof.wrap(DataLoader(Quick(), None))
    for _ in range(2):
        assert list(loader) == list(range(BATCHES))
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES, BATCHES]
    assert profile.measured_batches + profile.warmup_batches == 2 * BATCHES
    assert CHECK_EVERY <= len(profile.batches.index) < BATCHES
    assert profile.batches.nth[:CHECK_EVERY] == tuple(range(CHECK_EVERY))
    assert set(profile.batches.worker) == {-1}
    assert profile.lost_records == 0
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    [note] = profile.notes
    assert note.startswith(f"Of {2 * BATCHES:,} batches ")


class Slow(Quick):
    def __getitem__(self, index):
        time.sleep(0.006)
        return index


def test_windows_come_back_as_they_can_be_afforded():
    loader = pipeprof.wrap(DataLoader(Slow(), None, num_workers=1))
    for count, _ in enumerate(loader, start=1):
        if count == 300:
            break
    profile = loader.profile()
    nth = np.array(profile.batches.nth)
    assert profile.lost_records == 0
    assert profile.epochs[0].batches == count
    assert np.count_nonzero(np.diff(nth) > 1) >= 2
    assert profile.stages["fetch"].count == len(nth) - profile.warmup_batches


def all_recorded(loader):
    """Return the profile of `MANY` batches, and check that each has its record."""
    for count, _ in enumerate(loader, start=1):
        if count == MANY:
            break
    profile = loader.profile()
    assert len(profile.batches.index) == MANY
    assert profile.lost_records == 0
    return profile


@pytest.mark.parametrize(
    "make",
    [
        lambda: pipeprof.wrap(DataLoader(Quick(), None, num_workers=2), whole=True),
        lambda: pipeprof.wrap(DataLoader(Named(), None, num_workers=2)),
        lambda: pipeprof.wrap(DataLoader(Quick(), None, num_workers=2, in_order=False)),
        lambda: pipeprof.wrap(DataLoader(Quick(), None), whole=True),
        lambda: pipeprof.wrap(DataLoader(Named(), None)),
    ],
    ids=[
        "asked for",
        "stages named",
        "in any order",
        "no workers, asked for",
        "no workers, stages named",
    ],
)
def test_all_are_recorded(make):
    loader = make()
    profile = all_recorded(loader)
    assert not profile.notes


def test_a_device_is_observed_while_batches_are_recorded():
    loader = pipeprof.wrap(DataLoader(Quick(), None, num_workers=2))
    device = Device()
    loader._profiler.find_device = lambda: device
    for count, _ in enumerate(loader, start=1):
        if count == 3000:
            break
    profile = loader.profile()
    recorded = sum(each is not None for each in profile.batches.fetch_start_s)
    assert 0 < device.delivered < count / 2
    assert device.delivered == pytest.approx(recorded, abs=20), "but at both ends of windows"
    assert device.switched[:1] == [False], "on is how it begins"


class Device:
    """A device monitor that only counts."""

    def __init__(self):
        self.delivered, self.switched = 0, []

    def ask(self, number):
        pass

    def deliver(self, number, asked_s, delivered_s):
        self.delivered += 1

    def switch(self, on, number):
        self.switched.append(on)

    def leave(self):
        pass

    def collect(self):
        pass


@pytest.fixture
def poor(monkeypatch):
    """Let the budget pay for no window but the first."""
    monkeypatch.setattr("pipeprof.loaders.instrument.sampling._SHARE", 1e-12)


@pytest.mark.usefixtures("poor")
def test_short_epochs_of_a_data_set_that_names_stages_are_all_recorded():
    """They are, although each epoch ends before its first window would."""
    loader = pipeprof.wrap(DataLoader(Subset(Named(), range(20)), 2, num_workers=2))
    for _ in range(3):
        list(loader)
    profile = loader.profile()
    assert len(profile.batches.index) == 30
    assert None not in profile.batches.fetch_start_s


@pytest.mark.usefixtures("poor")
def test_all_batches_are_timed_though_few_are_recorded():
    """One step is long, outside the windows."""
    loader = pipeprof.wrap(DataLoader(Quick(), 8, num_workers=2))
    for count, _ in enumerate(loader, start=1):
        if count == 200:
            with pipeprof.pause("checkpoint"):
                time.sleep(0.2)
        if count == 320:
            break
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [count]
    assert profile.measured_batches + profile.warmup_batches + profile.pauses.rested_batches == (
        count - 1
    )
    assert profile.batches.nth == tuple(range(shortest_window(4)))
    assert (profile.pauses.count, profile.pauses.kinds[0].kind.name) == (1, "checkpoint")
    assert profile.throughput.samples_per_s == pytest.approx(8 * profile.throughput.batches_per_s)
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)


@pytest.mark.parametrize("prefetch", [1, 2, 4])
def test_a_short_run_knows_what_a_batch_computes(prefetch):
    """Of the batches that only fill the queue no figure is made, so others are sampled, too."""
    data = Subset(Quick(), range(400))
    loader = pipeprof.wrap(DataLoader(data, 8, num_workers=1, prefetch_factor=prefetch))
    assert len(list(loader)) == 50
    assert loader.profile().resources["cpu"].count >= 1
