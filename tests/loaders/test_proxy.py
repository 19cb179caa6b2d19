"""Type, attributes, copies and life time of a wrapped loader are those of the loader."""

from __future__ import annotations

import collections.abc
import copy
import gc
import pickle
import weakref

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import Dali, Marked, Pipeline
from tests.loaders.test_unchanged import FREED, Stream

LOADERS = {
    "inline": lambda: DataLoader(Marked(), 4),
    "workers": lambda: DataLoader(Marked(), 4, num_workers=1),
    "stream without length": lambda: DataLoader(Stream(None), 4),
    "pipeline": lambda: Pipeline(3, 0.0),
    "DALI": lambda: Dali(3, 0.0),
    "generator": lambda: (batch for batch in Pipeline(3, 0.0)),
    "list": lambda: [torch.zeros(2)] * 3,
}


KINDS = [collections.abc.Iterable, collections.abc.Iterator, DataLoader, list, Dali]


def answer(ask, thing):
    try:
        return ask(thing)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("form", LOADERS)
def test_type_attributes_and_truth_are_those_of_the_loader(form):
    inner = LOADERS[form]()
    loader = pipeprof.wrap(inner)
    for kind in KINDS:
        assert isinstance(loader, kind) == isinstance(inner, kind), kind
    for ask in (bool, len):
        assert answer(ask, loader) == answer(ask, inner)
    for name in getattr(inner, "__dict__", ()):
        assert getattr(loader, name) is getattr(inner, name)


@pytest.mark.parametrize("form", LOADERS)
def test_type_and_attributes_of_the_iterator_are_those_of_the_loaders(form):
    bare, iterator = iter(LOADERS[form]()), iter(pipeprof.wrap(LOADERS[form]()))
    assert isinstance(iterator, type(bare))
    assert iter(iterator) is iterator
    assert answer(bool, iterator) == answer(bool, bare)
    assert answer(len, iterator) == answer(len, bare)
    assert {name for name in dir(bare) if not hasattr(iterator, name)} == set()


def test_attributes_can_be_set_and_deleted():
    inner = DataLoader(Marked())
    loader = pipeprof.wrap(inner)
    loader.epoch = 3
    assert inner.epoch == 3
    del loader.epoch
    assert not hasattr(inner, "epoch")
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 7


@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))]
)
def test_it_can_be_copied_and_sent_to_another_process(clone, iterated):
    loader = pipeprof.wrap(DataLoader(Marked(), 4, num_workers=1))
    if iterated:
        list(loader)
    copied = clone(loader)
    assert isinstance(copied, DataLoader)
    assert len(list(copied)) == 10
    assert copied.profile().lost_records == 0


@pytest.mark.parametrize("form", FREED)
def test_what_the_loader_holds_is_freed_with_it(form):
    """Objects are freed at once, without the garbage collector, wherever torch frees them at
    once."""

    def left(wrapped: bool) -> tuple[bool, ...]:
        dataset = Marked()
        loader = DataLoader(dataset, 4, **FREED[form])
        iterator = iter(pipeprof.wrap(loader) if wrapped else loader)
        batch = next(iterator)
        references = [
            weakref.ref(thing)
            for thing in (dataset, loader, getattr(iterator, "_iterator", iterator), batch)
        ]
        del dataset, loader, iterator, batch
        return tuple(thing() is not None for thing in references)

    gc.collect()
    gc.disable()
    try:
        assert left(wrapped=True) == left(wrapped=False)
    finally:
        gc.enable()
