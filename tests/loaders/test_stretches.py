"""Loaders so fast that to watch each batch would cost too much: stretches are watched, whole."""

import queue
import threading

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.loaders import pace
from pipeprof.loaders.device_side import DeviceSide
from pipeprof.loaders.sender import Sender
from pipeprof.loaders.stretches import (
    FIRST,
    PAGE,
    STRETCH,
    how_many,
    next_watched,
    watched,
)
from pipeprof.measure.ring import Ring
from pipeprof.measure.rows import COLUMNS, nothing_known

BATCHES = 2_600
EVERY = 4


@pytest.fixture(autouse=True)
def no_device(monkeypatch):
    """Whatever other tests did in this process: with a device to look at all are watched."""
    monkeypatch.setattr(DeviceSide, "there", staticmethod(lambda: False))


class Quick(Dataset):
    """Numbers, which are handed over sooner than tensors."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        return index


class Named(Quick):
    """Says what it does: each batch counts."""

    def __getitem__(self, index):
        with pipeprof.stage("decode"):
            return index


def rows(turn_s: float, **known: float) -> np.ndarray:
    table = np.concatenate([np.zeros((300, 6)), nothing_known(300)], axis=1)
    table[:, COLUMNS.index("done_s")] = turn_s
    for name, value in known.items():
        table[:, COLUMNS.index(name)] = value
    return table


@pytest.mark.parametrize(
    ("turn_s", "every"), [(0.1, 1), (0.02, 1), (0.0036, 7), (0.0015, 17), (1e-4, 64), (0.0, 64)]
)
def test_the_faster_the_batches_the_fewer_stretches_are_watched(turn_s, every):
    assert how_many(rows(turn_s)) == every


@pytest.mark.parametrize("said", [{"turns": 2.0}, {"requests": 1.0}])
def test_a_data_set_that_says_what_it_does_is_watched_whole(said):
    assert how_many(rows(1e-4, **said)) == 1


def test_stretches_follow_from_the_number_of_a_batch():
    seen = [task for task in range(20 * STRETCH) if watched(task, 7)]
    assert seen == [task for first in (0, 7, 14)
                    for task in range(first * STRETCH, (first + 1) * STRETCH)]  # fmt: skip
    assert [next_watched(task, 7) for task in (0, STRETCH, 7 * STRETCH - 1, 7 * STRETCH)] == [
        7 * STRETCH, 7 * STRETCH, 7 * STRETCH, 14 * STRETCH,
    ]  # fmt: skip
    assert all(watched(task, every) for every in (0, 1) for task in range(0, 9999, 7))


class Results(queue.Queue):
    """As that of a worker's results."""

    def __init__(self):
        super().__init__()
        self._wlock = threading.Lock()


def test_a_worker_takes_its_hooks_off_and_has_them_on_before_a_stretch_begins():
    ring = Ring(slots=8)
    sender, results, turned = Sender(ring.writer(0)), Results(), []
    sender.begin_epoch()
    sender.attach(results)
    sender.watch(turned.append)
    ring.say(2)
    on, seen = True, []
    for task in range(4 * STRETCH):
        results.put((task, None))
        on = turned[-1] if turned else True
        seen.append(on)
    assert turned == [False, True, False, True]
    assert all(seen[task] for task in range(4 * STRETCH) if watched(task, 2))
    assert sum(seen) == 2 * STRETCH + 2 * PAGE
    ring.say(1)
    results.put((4 * STRETCH, None))
    assert turned[-1] is True


@pytest.mark.parametrize("kept", [False, True], ids=["new workers", "persistent"])
def test_what_is_watched_is_watched_whole_and_every_batch_comes(kept, monkeypatch):
    monkeypatch.setattr(pace, "how_many", lambda rows: EVERY)
    loader = pipeprof.wrap(DataLoader(Quick(), None, num_workers=2, persistent_workers=kept))
    for _ in range(2):
        assert list(loader) == list(range(BATCHES))
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES, BATCHES]
    noted = profile.measured_batches + profile.warmup_batches
    assert FIRST < noted < BATCHES
    assert profile.lost_records == 0
    # what a worker did after a stretch is not recorded
    assert profile.blame.get("unknown", 0.0) <= 0.03 * profile.stall_s
    assert sum(profile.blame.values()) == pytest.approx(profile.stall_s)
    assert profile.queue_depth is not None
    assert profile.overhead.share is not None
    [note] = profile.notes
    assert note.startswith(f"Of {2 * BATCHES:,} batches ")
    # an epoch's beginning is watched, and a stretch is whole but for what was under way
    nth = np.array(profile.batches.nth)[np.array(profile.batches.epoch) == 1]
    assert nth[:STRETCH].tolist() == list(range(STRETCH))
    ends = np.append(nth[:-1][np.diff(nth) > 1], nth[-1]) + 1
    assert not (ends[:-1] % STRETCH).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: pipeprof.wrap(DataLoader(Quick(), None, num_workers=2), whole=True),
        lambda: pipeprof.wrap(DataLoader(Named(), None, num_workers=2)),
        lambda: pipeprof.wrap(DataLoader(Quick(), None, num_workers=2, in_order=False)),
        lambda: pipeprof.wrap(DataLoader(Quick(), None)),
    ],
    ids=["asked for", "stages named", "in any order", "no workers"],
)
def test_all_are_watched(make):
    loader = make()
    for count, _ in enumerate(loader, start=1):
        if count == 2 * FIRST:
            break
    profile = loader.profile()
    assert profile.measured_batches + profile.warmup_batches == 2 * FIRST
    assert not profile.notes


def test_a_pass_left_where_batches_are_passed_by_knows_how_many_came():
    loader = pipeprof.wrap(DataLoader(Quick(), None, num_workers=2))
    for count, _ in enumerate(loader, start=1):
        if count == FIRST + 5 * PAGE + 7:
            break
    assert [epoch.batches for epoch in loader.profile().epochs] == [count]
