"""Loaders so fast that recording each batch would cost too much: windows are recorded, in full."""

import multiprocessing
import queue
import sys
import time
from multiprocessing import queues, reduction

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

import pipeprof
from pipeprof.loaders.instrument import wake_up
from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.instrument.sampling import (
    CHECK_EVERY,
    LONGEST,
    SamplingBudget,
    shortest_window,
)
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.measure.clock import FakeClock
from pipeprof.measure.ring import RECORD_FIELDS, REPORTED_FIELDS, TIMING_FIELDS, Ring

BATCHES = 2_600
MANY = 1_007


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Pretend that no device is in use, whatever other tests did; with one all are recorded."""
    monkeypatch.setattr(DeviceMonitor, "has_work", staticmethod(lambda: False))


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
    ("cycle_s", "most", "least"), [(0.04, 1.0, 0.95), (0.005, 0.21, 0.18), (0.0005, 0.022, 0.018)]
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


@pytest.mark.parametrize(("named", "says"), [({}, False), ({"turns": 2.0}, True),
                                             ({"requests": 1.0}, True)])  # fmt: skip
def test_a_data_set_that_reports_stages_is_known(named, says):
    ring = Ring(slots=8)
    writer = ring.writer(0)
    writer.begin_epoch()
    record = dict.fromkeys(REPORTED_FIELDS, 0.0) | named
    for task in range(20):
        plain = task != 5
        writer.write(
            task, list(record.values())[: len(TIMING_FIELDS) if plain else len(REPORTED_FIELDS)]
        )
    assert ring.reports_stages() is says


def sender_of(ring, worker, workers):
    """Return a sender, its queue, and a list that receives what its hooks are set to."""
    sender, results, switched = WorkerSender(ring.writer(worker), worker, workers), Results(), []
    sender.attach(results, results)
    sender.begin_epoch(switched.append)
    return sender, results, switched


class Results(queue.Queue):
    """A worker's queue of results, and the module with its pickler, which pickles nothing."""

    class _ForkingPickler:
        @staticmethod
        def dumps(obj):
            return obj

    def put(self, obj, block=True, timeout=None):
        super().put(self._ForkingPickler.dumps(obj), block, timeout)

    def hooked(self):
        return {"put", "_ForkingPickler"} & vars(self).keys()


def test_a_worker_has_its_hooks_on_where_main_wants_records():
    """It is the second of three workers, and fetches batches 1, 4, 7, and so on."""
    ring = Ring(slots=8)
    ring.set_window(0, 16)
    sender, results, switched = sender_of(ring, 1, 3)
    recorded_tasks = []
    for task in range(1, 100, 3):
        if task == 52:
            ring.set_window(50, 66)
            sender.switch(True)
        if switched[-1]:
            recorded_tasks.append(task)
        assert results.hooked() == ({"put", "_ForkingPickler"} if switched[-1] else set())
        results.put((task, None))
    assert switched == [True, False, True, False]
    assert recorded_tasks == [*range(1, 16, 3), 16, *range(52, 66, 3), 67], "and one more"


def test_a_worker_that_begins_where_nothing_is_wanted_has_no_hooks():
    _, results, switched = sender_of(Ring(slots=8), 0, 1)
    assert (switched, results.hooked()) == ([False], set())


def test_the_last_batch_of_a_window_is_pickled_after_it():
    ring, waiting = Ring(slots=8), []
    ring.set_window(0, 1)
    sender, results, _ = sender_of(ring, 0, 1)
    sender._put = lambda obj, *_: waiting.append(obj)  # until its thread has time
    sender.add_record((1.0, 2.0, 0.5, 8.0))
    results.put((0, None))
    assert results.hooked() == {"_ForkingPickler"}
    results._ForkingPickler.dumps(waiting[0])
    assert results.hooked() == set()
    record = dict(zip(RECORD_FIELDS, ring.read(1, [0])[0], strict=True))
    assert record["sent_s"] > 0


def test_a_task_that_wakes_a_worker_arrives_as_it_is(monkeypatch):
    switched = []
    monkeypatch.setattr(wake_up, "_wake", lambda: switched.append(True))
    tasks = multiprocessing.Queue()
    plain = (3, [1, 2])
    wake_up.wake_by_next_task(tasks)
    wake_up.wake_by_next_task(tasks)
    for message in (None, plain, plain):
        tasks.put(message)
    assert [tasks.get(timeout=10) for _ in range(3)] == [None, plain, plain]
    assert switched == [True], "once, and None is no task"
    assert "put" not in vars(tasks)


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
        time.sleep(0.004)
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


def test_with_a_device_in_use_all_are_recorded():
    loader = pipeprof.wrap(DataLoader(Quick(), None, num_workers=2))
    loader._profiler.find_device = lambda: Device()
    all_recorded(loader)


class Device:
    """A device monitor that reports nothing."""

    def ask(self, number):
        pass

    deliver = ask

    def leave(self):
        pass


@pytest.fixture
def poor(monkeypatch):
    """Let the budget pay for no window but the first."""
    monkeypatch.setattr("pipeprof.loaders.instrument.sampling._SHARE", 0.0)


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
