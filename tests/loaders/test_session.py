"""A session of `pipeprof run`: every loader of a script is measured; its errors stay its own."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler

import pipeprof
from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.overrides import (
    parse_override,
)
from pipeprof.loaders.autopatch.session import Session
from pipeprof.loaders.instrument.device_monitor import DeviceMonitor
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.instrument.wrap import ProfiledLoader

HERE = Path(__file__)


DATA = torch.arange(40)


@pytest.fixture
def loaders():
    """A subclass of DataLoader for this test, which may be patched."""

    class Loader(DataLoader):
        __init__ = DataLoader.__init__
        __iter__ = DataLoader.__iter__

    return Loader


class Stream:
    """A loader that is no DataLoader."""


def begin(loader_class, *overrides, whole=False):
    places = CallSites(str(HERE.parent))
    session = Session(places, [parse_override(each) for each in overrides], whole=whole)
    session._hook_torch(SimpleNamespace(DataLoader=loader_class))
    return session


def counts(session):
    return [sum(epoch.batches for epoch in each.epochs) for each in session.profiles(0.05)]


def test_what_is_iterated_is_measured(loaders):
    session = begin(loaders)
    loader = loaders(DATA, 4)
    for _ in range(2):
        assert torch.equal(torch.cat(list(loader)), DATA)
    assert counts(session) == [20]
    assert session.problems == []


def test_a_wrapped_loader_is_measured_once(loaders, monkeypatch):
    monkeypatch.setattr(ProfiledLoader, "__iter__", ProfiledLoader.__iter__)
    session = begin(loaders)
    session._hook_wrap(SimpleNamespace(ProfiledLoader=ProfiledLoader))
    loader = pipeprof.wrap(loaders(DATA, 4, num_workers=1))
    assert torch.equal(torch.cat(list(loader)), DATA)
    assert counts(session) == [10]
    assert [each.name for each in session.profiles(0.05)] == ["loader"]
    assert loader.profile().lost_records == 0


def test_so_is_the_loader_that_a_wrapped_generator_iterates(loaders, monkeypatch):
    monkeypatch.setattr(ProfiledLoader, "__iter__", ProfiledLoader.__iter__)
    session = begin(loaders)
    session._hook_wrap(SimpleNamespace(ProfiledLoader=ProfiledLoader))
    loader = loaders(DATA, 4, num_workers=1)
    assert len(list(pipeprof.wrap(each for each in later(loader)))) == 10
    assert counts(session) == [10]


def later(loader):
    yield from loader


def test_a_loader_inside_another_is_measured_too(loaders):
    session = begin(loaders)

    class Outer(loaders):
        def __iter__(self):
            return iter(self.inner)

    outer = Outer(DATA, 4)
    outer.inner = loaders(DATA, 8)
    assert len(list(outer)) == 5
    assert counts(session) == [5, 5]


def test_what_torch_raises_is_raised_with_overrides_too(loaders):
    session = begin(loaders, "num_workers=1")
    with pytest.raises(ValueError, match="batch_sampler option is mutually exclusive"):
        loaders(DATA, 4, batch_sampler=[[1]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'workers'"):
        loaders(DATA, workers=3)
    with pytest.raises(ValueError, match="mutually exclusive with shuffle"):
        loaders(DATA, sampler=RandomSampler(DATA), shuffle=True)
    assert session.problems == []


def test_what_iterating_raises_is_raised(loaders):
    def fails(loader):
        raise ValueError("no such data")

    loaders.__iter__ = fails
    session = begin(loaders)
    with pytest.raises(ValueError, match="no such data"):
        iter(loaders(DATA))
    assert session.problems == []


def test_overrides_of_a_loader_that_is_not_iterated_are_told(loaders):
    session = begin(loaders, "num_workers=1", "other.py:num_workers=2")
    loaders(DATA, 4)
    unused, replaced = session.remarks()
    assert unused.startswith(
        "--set other.py:num_workers=2: no DataLoader was made there; they were"
    )
    assert replaced.endswith("--set replaced num_workers 0 → 1")


def test_so_are_those_for_which_there_is_only_another_kind_of_loader(loaders):
    session = begin(loaders, "num_workers=2")
    session._register(Stream(), hook=False)
    assert len(session.created) == 1
    (line,) = session.remarks()
    assert line == "--set num_workers=2: no DataLoader was made there; none was made at all"


def test_a_loader_that_delivers_nothing_is_told(loaders):
    session = begin(loaders)
    assert list(loaders([], 4)) == []
    assert session.profiles(0.05) == []
    (problem,) = session.problems
    assert problem.endswith("was iterated, but delivered no batch")


@pytest.mark.parametrize("whole", [True, False])
def test_of_a_fast_loader_all_batches_are_recorded_when_asked_for(whole, loaders, monkeypatch):
    # other tests may have used a device in this process, with which all batches are recorded
    monkeypatch.setattr(DeviceMonitor, "has_work", staticmethod(lambda: False))
    session, batches = begin(loaders, whole=whole), 1_000
    for count, _ in enumerate(loaders(range(10_000), None, num_workers=1), 1):
        if count == batches:
            break
    (profile,) = session.profiles(0.05)
    assert profile.measured_batches + profile.warmup_batches == batches
    assert (len(profile.batches.index) == batches) is whole
    assert (f"Of {batches:,} batches" in "".join(profile.notes)) is not whole


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_failure_of_ours_costs_the_script_nothing(where, loaders, monkeypatch):
    iterate = LoaderProfiler.iterate

    def fails(self, loader, start):
        if where == "after":
            iterate(self, loader, start)
        raise RuntimeError("password=secret")

    monkeypatch.setattr(LoaderProfiler, "iterate", fails)
    session = begin(loaders)
    assert torch.equal(torch.cat(list(loaders(DATA, 4))), DATA)
    (problem,) = session.problems
    assert problem.endswith("was not measured (RuntimeError)")


def test_a_place_that_cannot_be_told_costs_the_script_nothing(loaders, monkeypatch):
    def fails(*_):
        raise RuntimeError

    session = begin(loaders, "num_workers=1")
    monkeypatch.setattr(CallSites, "name", fails)
    assert len(list(loaders(DATA, 4))) == 10
    assert session.problems == ["a Loader cannot be profiled (RuntimeError)"]
    assert counts(session) == [10]
    monkeypatch.setattr(LoaderProfiler, "profile", fails)
    assert session.profiles(0.05) == []
    assert session.problems[1:] == ["Loader was measured, but not analysed (RuntimeError)"]


def test_a_forked_process_is_left_alone(loaders, monkeypatch):
    session = begin(loaders, "num_workers=1")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    loader = loaders(DATA, 4)
    assert loader.num_workers == 0
    assert len(list(loader)) == 10
    assert session.profiles(0.05) == session.created == []
