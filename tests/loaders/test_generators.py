"""A generator makes its batches in the training loop's thread, and what it does is measured."""

import queue
import sys
import threading
import types
from time import process_time, sleep

import pytest
import torch

import pipeprof
from pipeprof.loaders.pipelines.observer import LIBRARIES


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
    assert profile.missing["fetch"] == "generator is not a torch DataLoader"
    assert set(profile.blame) == {"unknown"}
