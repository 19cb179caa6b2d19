"""A loader is measured whole where it keeps torch's iterator over epochs, or puts one of its own
around it. Workers that are threads are left alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from itertools import islice
from multiprocessing.context import SpawnContext
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, _DatasetKind
from torch.utils.data._utils import worker as torchs_worker

import pipeprof
from tests.loaders.forms import SAMPLES, AddsInMain, Marked

BATCHES = SAMPLES // 4
EPOCHS = 3


class Repeats:
    """A batch sampler that never ends."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from iter(self.sampler)


class Endless(DataLoader[Any]):
    """Keeps its workers over epochs, as the loaders of YOLO do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", Repeats(self.batch_sampler))
        self.iterator: Any = None

    def __len__(self) -> int:
        sampler: Any = self.batch_sampler
        return len(sampler.sampler)

    def __iter__(self) -> Any:
        if self.iterator is None:
            self.iterator = self._get_iterator()
        for _ in range(len(self)):
            yield next(self.iterator)


class EndlessByParent(Endless):
    """The same by its parent's ``__iter__``, as timm's does."""

    def __iter__(self) -> Any:
        if self.iterator is None:
            self.iterator = DataLoader.__iter__(self)
        for _ in range(len(self)):
            yield next(self.iterator)


def epochs_of(loader: Any) -> list[list[float]]:
    torch.manual_seed(3)
    return [batch[:, 0].tolist() for _ in range(EPOCHS) for batch in loader]


FORMS = [{"num_workers": 0}, {"num_workers": 1}, {"num_workers": 2, "in_order": False}]
KINDS = [Endless, AddsInMain]


@pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_each_epoch_is_whole(kind: Any, options: dict[str, Any], whole: bool) -> None:
    loader = pipeprof.wrap(kind(Marked(), 4, shuffle=True, **options), whole=whole)
    batches = epochs_of(loader)
    if options.get("in_order", True):
        assert batches == epochs_of(kind(Marked(), 4, shuffle=True, **options))
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES] * EPOCHS
    assert (profile.lost_records, len(batches)) == (0, EPOCHS * BATCHES)
    stages = {"fetch", "collate", "wait", "step"}
    assert stages <= profile.stages.keys()
    assert not {"fetch", "collate", "transfer"} & profile.missing.keys()
    if whole:
        assert {each is None for each in profile.batches.fetch_start_s} == {False}


@pytest.mark.parametrize("kind", KINDS)
def test_a_fast_loader_is_recorded_in_windows_over_many_epochs(kind: Any) -> None:
    loader = pipeprof.wrap(kind(range(4000), 4, num_workers=1))
    for _ in range(2):
        assert len(list(loader)) == 1000
    profile = loader.profile()
    assert profile.lost_records == 0
    # the window in which it began, and some of the second epoch's
    assert 16 <= len(profile.batches.index) < 1000
    assert {each is None for each in profile.batches.fetch_start_s} == {False}


def test_workers_that_persist_are_found_within_an_iterator_of_the_loaders_own() -> None:
    bare = AddsInMain(Marked(), 4, num_workers=2, persistent_workers=True)
    loader = pipeprof.wrap(bare, whole=True)
    epochs_of(loader)
    profile = loader.profile()
    assert profile.lost_records == 0
    assert {each is None for each in profile.batches.fetch_start_s} == {False}


def test_an_endless_loader_may_begin_anew() -> None:
    loader: Any = pipeprof.wrap(Endless(Marked(), 4, num_workers=1), whole=True)
    list(loader)
    loader.iterator._shutdown_workers()
    loader.iterator = None
    list(loader)
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES] * 2
    assert {each is None for each in profile.batches.fetch_start_s} == {False}


def test_one_that_asks_its_parent_is_measured_as_one_long_epoch() -> None:
    loader = pipeprof.wrap(EndlessByParent(Marked(), 4, num_workers=1), whole=True)
    assert len(epochs_of(loader)) == EPOCHS * BATCHES
    profile = loader.profile()
    assert len(profile.batches.index) == EPOCHS * BATCHES - 1  # the last step has not ended
    assert {each is None for each in profile.batches.fetch_start_s} == {False}


class Odd:
    """An iterator that nobody can look into."""

    def __init__(self, iterator: Any) -> None:
        self._next = iterator.__next__

    def __iter__(self) -> Odd:
        return self

    def __next__(self) -> Any:
        return self._next()

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not to be looked into")


class Lazy:
    """Makes what it stands for when it is asked for its class."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("made too early")


class Odder(DataLoader[Any]):
    def _get_iterator(self) -> Any:
        return Odd(super()._get_iterator())


class HoldsLazy(AddsInMain):
    def _get_iterator(self) -> Any:
        iterator = super()._get_iterator()
        iterator.lazy = Lazy()
        return iterator


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", [Odder, HoldsLazy])
def test_what_an_iterator_holds_is_never_asked(kind: Any, workers: int) -> None:
    loader = pipeprof.wrap(kind(Marked(), 4, num_workers=workers))
    assert len(epochs_of(loader)) == EPOCHS * BATCHES
    assert ("fetch" in loader.profile().missing) == (kind is Odder)


class AsThread(threading.Thread):
    """A "process" that is a thread, as MONAI's may be."""

    @property
    def pid(self) -> int:
        return id(self)

    def run(self) -> None:
        try:
            super().run()
        finally:
            torchs_worker._worker_info = None


class ThreadQueue(queue.Queue):  # type: ignore[type-arg]
    def close(self) -> None:
        pass

    def cancel_join_thread(self) -> None:
        pass


class Threads(SpawnContext):
    _name = "threads"
    Process = AsThread  # type: ignore[assignment]
    Queue = ThreadQueue  # type: ignore[assignment]


@pytest.mark.parametrize("measure", [pipeprof.wrap, pipeprof.tune])
def test_nothing_is_hooked_in_workers_that_are_threads(measure: Any) -> None:
    create, opened = _DatasetKind.create_fetcher, open
    loader = measure(DataLoader(Marked(), 4, num_workers=2, multiprocessing_context=Threads()))
    assert len(epochs_of(loader)) == EPOCHS * BATCHES
    assert (_DatasetKind.create_fetcher, open) == (create, opened)
    assert "threads of the training process" in str(loader.profile().missing) + str(
        loader.tuning() if measure is pipeprof.tune else ""
    )


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda loader: islice(loader, 35),
            "islice is not a torch DataLoader: if it iterates one, wrap that",
        ),
        (iter, "it was iterated before it was wrapped: wrap the DataLoader itself"),
    ],
)
def test_what_iterates_a_loader_already_says_what_to_wrap(make, why):
    loader = pipeprof.wrap(make(DataLoader(Marked(0.002), 1)))
    assert len(list(loader)) >= 30
    profile = loader.profile()
    assert profile.missing["fetch"].startswith(why)
    assert f"({why}" in profile.diagnosis.headline
