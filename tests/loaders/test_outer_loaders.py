"""Loaders of one's own that iterate a DataLoader, which is measured from inside."""

import gc
import operator
from itertools import islice

import pytest
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Act, Marked


class Begins:
    """Begins to iterate its loader in ``__iter__``, as timm's does, and is its own iterator."""

    def __init__(self, workers=0):
        self.loader = DataLoader(Marked(), 4, num_workers=workers)

    def __iter__(self):
        self.batches = iter(self.loader)
        return self

    def __next__(self):
        return next(self.batches) * 2


class BeginsLater(Begins):
    """Begins to iterate its loader when the first batch is asked for."""

    def __iter__(self):
        self.batches = None
        return self

    def __next__(self):
        self.batches = self.batches or iter(self.loader)
        return next(self.batches) * 2


class MakesAnother(Begins):
    """Makes a DataLoader for each pass, as DeepSpeed's does."""

    def __iter__(self):
        self.loader = DataLoader(Marked(), 4, num_workers=self.loader.num_workers)
        return super().__iter__()


class Maps(Begins):
    def __iter__(self):
        return map(operator.neg, self.loader)


def indices(batches):
    return [batch[:, 0].tolist() for batch in batches]


KINDS = [Begins, BeginsLater, MakesAnother, Maps]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_data_loader_is_measured_in_each_epoch(kind, workers):
    expected = indices(kind(workers))
    batches = pipeprof.wrap(kind(workers))
    for _ in range(3):
        assert indices(batches) == expected
    profile = batches.profile()
    assert {"fetch", "collate", "wait", "step"} <= profile.stages.keys()
    assert (profile.config.kind, profile.config.num_workers) == ("map", workers)
    assert [(each.index, each.batches) for each in profile.epochs] == [(0, 10), (1, 10), (2, 10)]
    assert not profile.missing.keys() & {"fetch", "collate"}
    assert any("iterates a DataLoader" in note for note in profile.notes)


@pytest.mark.parametrize("kind", [Begins, BeginsLater, Maps])
def test_its_errors_are_as_without_us(kind):
    def fail(index):
        raise KeyError(index)

    outer = kind()
    outer.loader = DataLoader(Act(fail), 4)
    with pytest.raises(KeyError, match="0"):
        next(iter(pipeprof.wrap(outer)))


def forever(loader):
    while True:
        yield from loader


class Kept:
    """Begins to iterate its loader once, and continues with it in each pass."""

    def __init__(self):
        self.batches = None
        self.loader = DataLoader(Marked(), 4)

    def __iter__(self):
        self.batches = self.batches or forever(self.loader)
        return map(operator.neg, self.batches)


@pytest.mark.parametrize("make", [lambda: forever(DataLoader(Marked(), 4)), Kept])
def test_a_pass_that_continues_is_counted_once(make):
    batches = pipeprof.wrap(make())
    for _ in range(3):
        assert len([*islice(batches, 8)]) == 8
    profile = batches.profile()
    assert len(batches.recording().batches.index) == 23, "the last step has no end yet"
    assert profile.config.kind == "map"
    assert [each.batches for each in profile.epochs] == [10, 10]


@pytest.mark.parametrize("loader", [DataLoader(Marked(), 4), [1, 2]])
@pytest.mark.parametrize("taken", [0, 1, 2])
def test_what_the_loop_leaves_ends_at_once(loader, taken):
    ended = []

    def batches():
        try:
            yield from loader
        finally:
            ended.append(True)

    gc.disable()
    try:
        iterator = iter(pipeprof.wrap(batches()))
        for _ in range(taken):
            next(iterator)
        del iterator
        assert ended == [True] * bool(taken)
    finally:
        gc.enable()


def test_one_that_iterates_none_is_measured_itself():
    batches = pipeprof.wrap([1, 2, 3])
    assert [*batches] == [1, 2, 3]
    profile = batches.profile()
    assert [each.batches for each in profile.epochs] == [3]
    assert profile.missing["fetch"] == "list is not a torch DataLoader"
