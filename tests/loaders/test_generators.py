"""A generator makes its batches in the training loop's thread, and what it does is measured."""

import queue
import sys
import threading
import types
from itertools import islice
from time import process_time, sleep

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.loaders.pipelines.observer import LIBRARIES
from tests.loaders.forms import Act, Marked


@pytest.fixture(autouse=True)
def no_pipelines(monkeypatch):
    """Other tests may have imported the libraries whose pipelines a generator may hold."""
    for name in LIBRARIES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def compute(seconds):
    end_s = process_time() + seconds
    while process_time() < end_s:
        sum(range(200))


def computed(count):
    for _ in range(count):
        with pipeprof.stage("decode"):
            compute(0.006)
        compute(0.001)
        yield torch.zeros(8, 2)


def train(batches, step_s=0.004):
    profiled = pipeprof.wrap(batches)
    for _ in profiled:
        sleep(step_s)
    return profiled.profile()


@pytest.mark.timed
def test_what_it_computes_is_blamed():
    profile = train(computed(60))
    assert next(iter(profile.blame)) in ("decode", "worker-cpu")  # the latter, where it has no core
    assert profile.blame["decode"] > profile.blame["fetch"] > 0
    assert "sampler" not in profile.blame
    assert profile.stages["fetch"].mean_s > profile.stages["decode"].mean_s > 0.0055


def from_thread(count):
    batches = queue.Queue(2)

    def fill():
        for _ in range(count):
            sleep(0.006)
            batches.put(torch.zeros(8, 2))

    threading.Thread(target=fill, daemon=True).start()
    for _ in range(count):
        yield batches.get()


@pytest.mark.timed
def test_of_one_that_waits_for_a_thread_it_is_unknown_what_workers_would_bring():
    profile = train(from_thread(60))
    assert next(iter(profile.blame)) == "fetch"
    assert profile.recommendations == ()


def test_it_stays_a_generator():
    closed = []

    def batches():
        try:
            yield 1
            received = yield 2
            yield received
            raise KeyError("no more")
        finally:
            closed.append(True)

    iterator = iter(pipeprof.wrap(batches()))
    assert isinstance(iterator, types.GeneratorType)
    assert (next(iterator), next(iterator)) == (1, 2)
    assert iterator.send("sent") == "sent"
    with pytest.raises(KeyError, match="no more"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert closed == [True]
    left = iter(pipeprof.wrap(batches()))
    next(left)
    left.close()
    assert closed == [True, True]
    with pytest.raises(StopIteration):
        next(left)


def test_one_that_may_hold_a_pipeline_is_seen_from_outside(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.data", types.ModuleType("ray.data"))
    profile = train(computed(40))
    assert profile.missing["fetch"].startswith("generator is not a torch DataLoader")
    assert set(profile.blame) == {"unknown"}


def forever(loader):
    while True:
        yield from loader


class Shown:
    """Yields the batches of a loader, as a progress bar does."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        yield from self.loader


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_it_iterates_is_measured_from_inside(workers):
    batches = pipeprof.wrap(forever(DataLoader(Marked(), 4, num_workers=workers)))
    firsts = [batch[0, 0].item() for batch in islice(batches, 25)]
    assert firsts == [*range(0, 40, 4), *range(0, 40, 4), *range(0, 20, 4)]
    profile = batches.profile()
    assert {"fetch", "collate", "wait", "step"} <= profile.stages.keys()
    assert profile.config.num_workers == workers
    assert [each.batches for each in profile.epochs] == [10, 10]
    assert any("iterates a DataLoader" in note for note in profile.notes)


def test_one_that_is_made_anew_for_each_epoch_has_the_epochs_of_the_loader():
    batches = pipeprof.wrap(Shown(DataLoader(Marked(), 4, num_workers=1)))
    for _ in range(3):
        assert len(list(batches)) == 10
    assert [(each.index, each.batches) for each in batches.profile().epochs] == [
        (0, 10), (1, 10), (2, 10)
    ]  # fmt: skip


def test_so_it_is_where_a_library_of_pipelines_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray.data", types.ModuleType("ray.data"))
    batches = pipeprof.wrap(forever(DataLoader(Marked(), 4)))
    assert len(list(islice(batches, 15))) == 15
    assert [each.batches for each in batches.profile().epochs] == [10]


def test_of_several_loaders_the_first_is_measured():
    first, second = DataLoader(Marked(), 4), DataLoader(Marked(), 8)
    batches = pipeprof.wrap(pair for pair in zip_later(first, second))
    assert len(list(batches)) == 5
    assert batches.profile().config.batch_size == 4


def zip_later(*loaders):
    yield from zip(*loaders, strict=False)


def test_a_loader_with_a_profile_of_its_own_keeps_it():
    loader = pipeprof.wrap(DataLoader(Marked(), 4))
    batches = pipeprof.wrap(forever(loader))
    assert len(list(islice(batches, 15))) == 15
    assert [each.batches for each in loader.profile().epochs] == [10]
    assert len(batches.recording().batches.asked_s) == 15


def test_an_error_of_the_loader_within_is_that_of_the_generator():
    def fail(index):
        raise KeyError(index)

    loader = DataLoader(Act(fail), 4)
    batches = pipeprof.wrap(forever(loader))
    with pytest.raises(KeyError, match="0"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)
    assert batches.profile().measured_batches == 0


def test_an_empty_one_has_a_profile_without_batches():
    batches = pipeprof.wrap(Shown([]))
    assert list(batches) == []
    assert [each.batches for each in batches.profile().epochs] == [0]
