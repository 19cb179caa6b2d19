"""A loader that another one holds, passes on or replaces is measured as if iterated itself."""

import copy
import inspect
import pickle
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import pipeprof
from pipeprof.integrations.profiled_loaders import ProfiledLoaders
from pipeprof.loaders.instrument.inside import loader_within
from tests.loaders.forms import SAMPLES, Marked, prepared

BATCHES = SAMPLES // 4


class Holder:
    """Yields the batches of a DataLoader that it holds, one late, as Accelerate's loaders do."""

    def __init__(self, loader, attribute="base_dataloader"):
        setattr(self, attribute, loader)
        self._attribute = attribute

    def __iter__(self):
        held = getattr(self, self._attribute)
        last = None
        for batch in held[0] if isinstance(held, list) else held:
            if last is not None:
                yield last
            last = batch
        yield last


class PassesOn(DataLoader):
    def __iter__(self):
        yield from super().__iter__()


def loader_of(workers, kind=DataLoader, **options):
    return kind(Marked(), 4, num_workers=workers, **options)


def is_whole(profile, workers):
    stages = {"fetch", "collate", "wait", "step"} | ({"transfer"} if workers else set())
    assert stages <= profile.stages.keys()
    assert profile.measured_batches + profile.warmup_batches == BATCHES
    assert profile.lost_records == 0
    return True


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("attribute", ["base_dataloader", "_dataloader"])
def test_the_loader_that_another_holds_is_measured(attribute, workers):
    loader = pipeprof.wrap(Holder(loader_of(workers), attribute))
    assert len(list(loader)) == BATCHES
    assert is_whole(loader.profile(), workers)


@pytest.mark.parametrize("attribute", ["pipeline", "flattened"])
def test_so_is_the_first_of_a_pipeline_and_the_only_one_of_several(attribute):
    loader = pipeprof.wrap(Holder([loader_of(2)], attribute))
    assert len(list(loader)) == BATCHES
    assert is_whole(loader.profile(), 2)


class HoldingLoader(DataLoader):
    """Is a DataLoader, but yields the batches of another one, as Ray Train's is."""

    def __init__(self, loader):
        vars(self).update(vars(loader), _dataloader=loader)

    def __iter__(self):
        return iter(self._dataloader)


@pytest.mark.parametrize("wrap_first", [True, False])
def test_a_loader_that_holds_another_is_not_measured_twice(wrap_first):
    if wrap_first:
        loader = pipeprof.wrap(loader_of(2))
        batches = HoldingLoader(prepared(loader))
    else:
        loader = batches = pipeprof.wrap(HoldingLoader(loader_of(2)))
    assert len(list(batches)) == BATCHES
    assert is_whole(loader.profile(), 2)
    assert len(loader.profile().epochs) == 1


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subclass_that_passes_on_batches_is_measured(workers):
    loader = pipeprof.wrap(loader_of(workers, PassesOn))
    for _ in range(2):
        assert len(list(loader)) == BATCHES
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES] * 2
    assert {"fetch", "collate"} <= profile.stages.keys()


def test_workers_that_stay_are_measured_in_every_epoch():
    loader = pipeprof.wrap(Holder(loader_of(2, persistent_workers=True)))
    for _ in range(3):
        assert len(list(loader)) == BATCHES
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES] * 3
    assert profile.lost_records == 0
    loader.base_dataloader._iterator._shutdown_workers()


def test_a_loader_that_is_wrapped_twice_has_one_profile():
    inner = pipeprof.wrap(loader_of(2))
    outer = pipeprof.wrap(Holder(inner))
    assert len(list(outer)) == BATCHES
    for each in (inner, outer):
        assert is_whole(each.profile(), 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_that_a_framework_builds_instead_is_measured(workers):
    loader = pipeprof.wrap(loader_of(workers))
    assert len(list(prepared(prepared(loader)))) == BATCHES
    assert is_whole(loader.profile(), workers)


def test_a_loader_of_the_users_own_on_the_same_data_is_another():
    loader = pipeprof.wrap(loader_of(0))
    list(DataLoader(loader.dataset, 4))
    assert loader.profile().measured_batches == 0


def test_a_framework_that_builds_a_loader_of_other_data_is_not_followed():
    loader = pipeprof.wrap(loader_of(0))
    other = prepared(SimpleNamespace(dataset=Marked(), batch_size=4, num_workers=0))
    list(other)
    assert loader.profile().measured_batches == 0


class Stream(IterableDataset):
    """A stream of known data, or a part of one; it has no length that could be asked for."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        data = self.dataset
        return iter(data) if isinstance(data, Stream) else (data[each] for each in range(SAMPLES))


def test_a_framework_may_divide_a_stream_by_another_that_holds_it():
    """Accelerate does so, to give each rank its samples."""
    loader = pipeprof.wrap(DataLoader(Stream(Marked()), 4))
    assert len(list(prepared(loader, dataset=Stream(loader.dataset)))) == BATCHES
    assert is_whole(loader.profile(), 0)


def test_the_length_of_a_loader_is_not_asked_for():
    holder = Holder(DataLoader(Stream(Marked()), 4))
    assert loader_within(holder) is holder.base_dataloader
    loaders = ProfiledLoaders()
    loaders.measure(holder, "train")
    assert len(list(holder)) == BATCHES
    assert is_whole(loaders.profiles["train"], 0)


def test_a_framework_may_inspect_a_wrapped_loader_and_make_another_of_its_type():
    """Lightning does so where it injects a sampler."""
    inner = loader_of(2)
    loader = pipeprof.wrap(inner)
    assert vars(loader) is vars(inner)
    assert inspect.signature(loader.__init__) == inspect.signature(inner.__init__)
    another = type(loader)(dataset=inner.dataset, batch_size=4, num_workers=2)
    assert type(inner) is DataLoader is another.__class__
    assert len(list(another)) == BATCHES
    assert is_whole(loader.profile(), 2)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_of_it_begins_without_measurements(clone):
    loader = pipeprof.wrap(Holder(loader_of(0)))
    list(loader)
    copied = clone(loader)
    assert copied.profile().measured_batches == 0
    list(copied)
    assert is_whole(copied.profile(), 0)


class Claims(Holder):
    """Claims to be a DataLoader, as Accelerate's loaders do."""

    @property
    def __class__(self):
        return DataLoader


def test_a_stand_in_is_of_the_type_that_the_loader_is_and_of_the_one_it_claims():
    loader = pipeprof.wrap(Claims(loader_of(0)))
    assert isinstance(loader, DataLoader)
    assert isinstance(loader, Claims)


def test_batches_order_and_randomness_are_those_without_us():
    def numbers(wrap):
        torch.manual_seed(0)
        loader = Holder(loader_of(2, shuffle=True))
        batches = list(wrap(loader))
        return [int(index) for batch in batches for index in batch[:, 0]], torch.rand(1).item()

    assert numbers(pipeprof.wrap) == numbers(lambda loader: loader)


class Odd(DataLoader):
    """Raises wherever it is looked at, but yields batches."""

    state_dict = property(lambda self: 1 / 0)

    @property
    def __dict__(self):
        raise RuntimeError("private")


def test_a_loader_that_cannot_be_looked_into_yields_its_batches_all_the_same():
    loader = pipeprof.wrap(loader_of(0, Odd))
    assert len(list(loader)) == BATCHES
    assert loader.profile().measured_batches
