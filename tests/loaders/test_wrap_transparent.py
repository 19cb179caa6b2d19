"""A wrapped loader yields and raises what the loader does, even where pipeprof fails."""

import copy
import random

import numpy as np
import pytest
import torch
import urllib3
from torch.utils.data import DataLoader, Dataset, IterableDataset

import pipeprof
from pipeprof.errors import UsageError
from pipeprof.loaders.instrument.wrap import ProfiledLoader
from tests.loaders.test_wrap import Sleepy


def test_it_can_be_copied():
    inner = DataLoader(Sleepy(), 4)
    assert copy.copy(pipeprof.wrap(inner)).dataset is inner.dataset


def test_what_cannot_be_iterated_is_refused():
    with pytest.raises(UsageError, match="not int"):
        pipeprof.wrap(7)


class Noisy(Dataset):
    """Uses every random source that torch seeds in a worker."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor([index, random.random(), np.random.rand(), torch.rand(()).item()])


def remember_worker(worker):
    torch.manual_seed(torch.initial_seed() + worker)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_order_and_randomness_are_the_same_with_and_without(workers):
    def batches(wrapped):
        random.seed(1), np.random.seed(1), torch.manual_seed(1)
        loader = DataLoader(
            Noisy(), 4, shuffle=True, num_workers=workers, worker_init_fn=remember_worker
        )
        seen = list(pipeprof.wrap(loader) if wrapped else loader)
        assert loader.worker_init_fn is remember_worker
        return torch.cat([*seen, torch.rand(1, 4)])

    assert torch.equal(batches(wrapped=True), batches(wrapped=False))


def test_it_passes_for_the_loader_it_wraps():
    inner = DataLoader(Sleepy(), 4)
    loader = pipeprof.wrap(inner)
    assert isinstance(loader, DataLoader)
    assert isinstance(loader, ProfiledLoader)
    assert len(loader) == len(inner) == 16
    assert loader.dataset is inner.dataset
    loader.timeout = 0
    assert pipeprof.wrap(loader) is loader
    assert len(iter(loader)) == 16


@pytest.mark.parametrize("workers", [0, 1])
def test_the_users_exception_comes_through(workers):
    class Broken(Sleepy):
        def __getitem__(self, index):
            if index == 9:
                raise LookupError("sample 9 is bad")
            return torch.zeros(1)

    loader = pipeprof.wrap(DataLoader(Broken(), 4, num_workers=workers))
    batches = iter(loader)
    next(batches), next(batches)
    with pytest.raises(LookupError, match="sample 9 is bad"):
        next(batches)
    if workers:
        # torch keeps the iterator alive in the traceback, and its workers with it
        batches._shutdown_workers()


class BrokenSample(Sleepy):
    def __getitem__(self, index):
        return {}["sample"]


class NoServer(Sleepy):
    def __getitem__(self, index):
        return urllib3.PoolManager().request("GET", "http://127.0.0.1:1/", retries=False)


class BrokenStream(IterableDataset):
    def __iter__(self):
        yield 1
        raise ValueError("the stream broke")


def broken_collate(samples):
    try:
        raise OSError("first")
    except OSError as error:
        raise RuntimeError("cannot collate") from error


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (BrokenSample(), {}),
        (NoServer(), {}),
        (BrokenSample(), {"persistent_workers": True}),
        (BrokenStream(), {}),
        (Sleepy(), {"collate_fn": broken_collate}),
    ],
)
def test_a_workers_error_has_the_very_text_it_has_without_us(dataset, options):
    """torch sends the worker's traceback as the text of the error, without any frame of
    pipeprof."""

    def message(wrapped):
        loader = DataLoader(dataset, 4, num_workers=1, **options)
        batches = iter(pipeprof.wrap(loader) if wrapped else loader)
        with pytest.raises(Exception, match="Original Traceback") as caught:
            list(batches)
        batches._shutdown_workers()
        return type(caught.value), str(caught.value)

    assert message(wrapped=True) == message(wrapped=False)


def test_a_torch_that_we_do_not_know_costs_records_and_nothing_else(monkeypatch):
    def unknown(hook, worker):
        raise AttributeError("no such fetcher")

    monkeypatch.setattr("pipeprof.loaders.instrument.worker_hook.WorkerHook._instrument", unknown)
    loader = pipeprof.wrap(DataLoader(Sleepy(), 4, num_workers=1))
    list(loader)
    profile = loader.profile()
    assert profile.measured_batches + profile.warmup_batches == 16
    assert "lost-records" in [finding.code for finding in profile.findings]
    assert set(profile.blame) == {"unknown"}


def test_a_loader_with_an_iterator_of_its_own_gives_the_host_side():
    class Own(DataLoader):
        def __iter__(self):
            return map(torch.clone, self._get_iterator())

    for workers in (0, 1):
        loader = pipeprof.wrap(Own(Sleepy(), 4, num_workers=workers))
        list(loader)
        profile = loader.profile()
        assert profile.missing["fetch"] == "Own makes an iterator of its own"
        assert profile.stages["wait"].count > 0


def test_a_loader_that_was_not_iterated_says_what_to_do():
    profile = pipeprof.wrap(DataLoader(Sleepy(), 4)).profile()
    assert "Iterate what wrap() returned" in profile.diagnosis.headline


def test_a_batch_that_cannot_be_counted_is_delivered_all_the_same():
    class Odd:
        def shape(self):
            return "round"

        def __len__(self):
            raise RuntimeError("no length today")

    odd = Odd()
    loader = pipeprof.wrap([odd] * 3)
    assert list(loader) == [odd] * 3
    assert loader.recording().batches.samples == (1, 1, 1)
