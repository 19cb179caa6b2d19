"""A function that returns a batch at each call is profiled as it is called."""

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
from time import sleep

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.loaders.pipelines.observer import LIBRARIES


@pytest.fixture(autouse=True)
def no_pipelines(monkeypatch):
    """Other tests may have imported the libraries whose pipelines a function may hold."""
    for name in LIBRARIES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    gc.collect()  # functions that refer to themselves are measured until then


def get_batch(size=4):
    """Return a batch."""
    with pipeprof.stage("decode"):
        sleep(0.004)
    return torch.zeros(size, 2)


def train(function, steps, step_s=0.002):
    for _ in range(steps):
        function()
        sleep(step_s)


def count(profiled):
    """Return how many batches came, without the last one, whose step has no end."""
    return len(profiled.recording().batches.index)


@pytest.mark.timed
def test_what_it_does_is_blamed():
    profiled = pipeprof.wrap(get_batch)
    train(profiled, 60)
    profile = profiled.profile()
    assert profile.name == "get_batch"
    assert profile.diagnosis.starved_fraction == pytest.approx(2 / 3, abs=0.2)
    assert next(iter(profile.blame)) == "decode"
    assert {"fetch", "decode", "wait", "step"} <= profile.stages.keys()
    assert "sampler" not in profile.blame


@pytest.mark.timed
def test_an_evaluation_is_a_pause_and_not_in_the_profile():
    profiled = pipeprof.wrap(get_batch)
    for _ in range(4):
        with torch.no_grad():
            train(profiled, 10, step_s=0)
        train(profiled, 20)
    profile = profiled.profile()
    assert count(profiled) == 79
    assert profile.diagnosis.starved_fraction == pytest.approx(2 / 3, abs=0.2)
    [pauses] = profile.pauses.kinds
    assert (pauses.kind.name, pauses.count) == ("get_batch without gradients", 3)


def test_where_no_call_has_gradients_the_profile_is_of_these():
    profiled = pipeprof.wrap(get_batch, "mine")
    with torch.no_grad():
        train(profiled, 5)
    assert count(profiled) == 4
    assert profiled.recording().name == "mine without gradients"


def test_one_call_without_gradients_in_each_step_is_part_of_it():
    profiled = pipeprof.wrap(get_batch)
    for _ in range(20):
        with torch.no_grad():
            profiled()
        profiled()
    recording = profiled.recording()
    assert count(profiled) == 19
    assert recording.batches.pause_s == ()
    assert [each.name for each in recording.other_loaders] == ["get_batch without gradients"]


def test_it_stays_the_function():
    profiled = pipeprof.wrap(get_batch)
    assert pipeprof.wrap(profiled) is profiled
    assert profiled(size=3).shape == (3, 2)
    assert profiled.__name__ == "get_batch"
    assert profiled.__doc__ == "Return a batch."
    assert inspect.isfunction(profiled)
    assert inspect.signature(profiled) == inspect.signature(get_batch)
    assert copy.deepcopy(profiled) is profiled


@pipeprof.wrap
def decorated():
    return 1


def test_another_process_gets_what_its_module_has_in_that_place():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(pipeprof.wrap(get_batch))) is get_batch


def test_what_it_raises_reaches_the_loop_and_the_next_call_is_measured_again():
    outcomes = iter([1, KeyError("lost"), 2, StopIteration("end"), 3, 4])

    def next_batch():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    profiled = pipeprof.wrap(next_batch)
    assert profiled() == 1
    with pytest.raises(KeyError, match="lost"):
        profiled()
    assert profiled() == 2
    with pytest.raises(StopIteration, match="end"):
        profiled()
    assert (profiled(), profiled()) == (3, 4)
    assert [epoch.batches for epoch in profiled.recording().epochs] == [1, 1]


def test_methods_and_partial_functions_too():
    class Data:
        def __init__(self, size):
            self.size = size

        @pipeprof.wrap
        def batch(self):
            return torch.zeros(self.size)

        def other(self):
            return torch.ones(self.size)

    data = Data(3)
    assert data.batch().shape == (3,)
    assert data.batch.profile().name == "batch"
    assert pipeprof.wrap(data.other)().sum() == 3
    partial = pipeprof.wrap(functools.partial(get_batch, size=7))
    assert len(partial()) == 7
    assert partial.recording().name == "get_batch"


def test_arguments_live_no_longer_than_without_us():
    class Split:
        pass

    profiled, split = pipeprof.wrap(lambda split: torch.zeros(1)), Split()
    references = sys.getrefcount(split)
    profiled(split)
    assert sys.getrefcount(split) == references


def test_a_call_within_a_call_and_one_of_another_thread_are_as_without_us():
    def countdown(number):
        return [number, *profiled(number - 1)] if number else []

    profiled = pipeprof.wrap(countdown)
    assert profiled(3) == [3, 2, 1]

    waits, go_on = threading.Event(), threading.Event()

    def slow(first):
        if first:
            waits.set()
            go_on.wait()
        return first

    slow = pipeprof.wrap(slow)
    thread = threading.Thread(target=slow, args=(True,))
    thread.start()
    waits.wait()
    assert slow(False) is False
    go_on.set()
    thread.join()


def test_a_data_loader_that_it_iterates_is_measured_from_inside():
    batches = iter(())

    def next_batch():
        nonlocal batches
        try:
            return next(batches)
        except StopIteration:
            batches = iter(loader)
            return next(batches)

    loader = DataLoader(torch.arange(64), batch_size=8)
    profiled = pipeprof.wrap(next_batch, whole=True)
    for _ in range(20):
        profiled()
    recording = profiled.recording()
    assert (recording.config.kind, recording.config.batch_size) == ("map", 8)
    assert len(recording.batches.index) >= 19
    assert any("What was wrapped iterates a DataLoader" in each for each in recording.notes)


def generate():
    yield 1


async def read():
    return 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (generate, r"a generator function, .* pipeprof\.wrap\(generate\(…\)\)"),
        (read, "async function"),
        (DataLoader, "not the class DataLoader"),
        (torch.nn.Linear(1, 1), "not Linear"),
    ],
)
def test_what_returns_no_batch_is_refused(given, error):
    with pytest.raises(UsageError, match=error):
        pipeprof.wrap(given)
