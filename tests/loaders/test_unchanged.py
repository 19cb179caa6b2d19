"""All that a training program can observe of a loader is the same with and without pipeprof."""

from __future__ import annotations

import builtins
import gc
import io
import os
import random
import threading
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import fsspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

import pipeprof
from tests.loaders.forms import Backwards, Growing, Marked, bits

LENGTH = 11


class Bad(Exception):
    """Raised on purpose."""


def sample(index: int) -> torch.Tensor:
    """Return all that code in a data set can observe and draw, in one tensor."""
    info = get_worker_info()
    return torch.tensor(
        [
            index, random.random(), np.random.rand(), torch.rand(()).item(),
            torch.get_num_threads(), torch.initial_seed() % 2**31,
            *((info.id, info.num_workers, info.seed % 2**31) if info else (-1, -1, -1)),
        ],
        dtype=torch.float64,
    )  # fmt: skip


@dataclass
class Map(Dataset):
    bad_at: int | None

    def __len__(self):
        return LENGTH

    def __getitem__(self, index):
        if index == self.bad_at:
            raise Bad(f"sample {index}")
        return sample(index)


@dataclass
class Stream(IterableDataset):
    bad_at: int | None

    def __len__(self):
        return LENGTH

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id if info else 0, LENGTH, info.num_workers if info else 1):
            if index == self.bad_at:
                raise Bad(f"sample {index}")
            yield sample(index)


class BadSampler(Sampler):
    def __len__(self):
        return LENGTH

    def __iter__(self):
        yield from range(7)
        raise Bad("no more indices")


def collate(samples):
    random.random()
    return {"all": torch.stack(samples), "first": samples[0].sum().item()}


def bad_collate(samples):
    if any(int(one[0]) == 5 for one in samples):
        raise Bad("cannot collate")
    return torch.stack(samples)


def reseed(worker):
    torch.manual_seed(torch.initial_seed() + worker)


def bad_init(worker):
    if worker == 1:
        raise Bad("worker 1 cannot start")


@st.composite
def cases(draw):
    """Draw arguments of a DataLoader, and how it is iterated."""
    stream = draw(st.booleans())
    workers = draw(st.integers(0, 2))
    options: dict[str, Any] = {"num_workers": workers}
    options["worker_init_fn"] = draw(st.sampled_from([None, reseed, bad_init]))
    options["collate_fn"] = draw(st.sampled_from([None, collate, bad_collate]))
    if draw(st.integers(0, 3)):
        options["batch_size"] = draw(st.integers(1, 5))
        options["drop_last"] = draw(st.booleans())
    elif not stream:
        options["batch_sampler"] = Growing(LENGTH)
    else:
        options |= {"batch_size": None, "collate_fn": None}
    if not stream and "batch_sampler" not in options:
        chosen = draw(st.sampled_from(["shuffle", "sampler", "bad sampler", "none"]))
        options |= {
            "shuffle": {"shuffle": True},
            "sampler": {"sampler": Backwards(length=LENGTH)},
            "bad sampler": {"sampler": BadSampler()},
            "none": {},
        }[chosen]
    if workers:
        options["persistent_workers"] = draw(st.booleans())
        options["prefetch_factor"] = draw(st.integers(1, 3))
        options["in_order"] = workers == 2 or draw(st.booleans())
    return {
        "dataset": Stream if stream else Map,
        "bad_at": draw(st.sampled_from([None, None, None, 4])),
        "options": options,
        "generator": draw(st.sampled_from([None, 7])),
        "pin_memory": draw(st.booleans()),  # which warns, without an accelerator
        "length_first": draw(st.booleans()),
        "stops": draw(st.lists(st.sampled_from([1, 3, 99]), min_size=1, max_size=3)),
    }


@dataclass
class Outcome:
    """All that a training loop observes."""

    batches: list[Any] = field(default_factory=list)
    errors: list[tuple[type, str]] = field(default_factory=list)
    warned: list[tuple[type, str]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    random_after: tuple[Any, ...] = ()


def outcome(case: dict[str, Any], wrapped: bool) -> Outcome:
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    seed, seen = case["generator"], Outcome()
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loader = DataLoader(
            case["dataset"](case["bad_at"]),
            generator=generator,
            pin_memory=case["pin_memory"],
            **case["options"],
        )
        inner, loader = loader, pipeprof.wrap(loader) if wrapped else loader
        if case["length_first"] and "batch_sampler" not in case["options"]:
            seen.lengths.append(len(loader))
        for stop in case["stops"]:
            iterate(loader, stop, seen)
        assert inner.worker_init_fn is case["options"]["worker_init_fn"]
    seen.warned = [(warning.category, str(warning.message)) for warning in warned]
    seen.random_after = (
        torch.get_rng_state().tolist(),
        random.getstate(),
        str(np.random.get_state()),
        generator and generator.get_state().tolist(),
    )
    if wrapped:
        loader.profile()
    return seen


def iterate(loader: Any, stop: int, seen: Outcome) -> None:
    iterator = None
    try:
        iterator = iter(loader)
        for number, batch in enumerate(iterator, 1):
            seen.batches.append(bits(batch))
            if number == stop:
                break
    except Exception as error:
        seen.errors.append((type(error), str(error)))
        # torch keeps the iterator, and with it the workers, in the error's traceback
        if hasattr(iterator, "_shutdown_workers"):
            iterator._shutdown_workers()
        if getattr(loader, "_iterator", None) is not None:
            loader._iterator = None


@pytest.fixture
def nothing_of_others():
    """Collect what other tests left open, which would otherwise warn in the middle of this one."""
    gc.collect()


@pytest.mark.usefixtures("nothing_of_others")
@settings(max_examples=15)
@given(cases())
def test_batches_randomness_errors_and_warnings_are_the_same(case):
    assert outcome(case, wrapped=True) == outcome(case, wrapped=False)


class Bottomless(Marked):
    def __getitem__(self, index):
        return self[index]


class Answering(Marked):
    """Returns a value, or raises an error of its own, for any attribute."""

    def __getattr__(self, name):
        if name == "__getitems__":
            raise AttributeError(name)
        raise KeyError(name)


def test_an_endless_recursion_reaches_the_user_as_that():
    batches = iter(pipeprof.wrap(DataLoader(Bottomless(), num_workers=1)))
    with pytest.raises(RecursionError, match="maximum recursion depth"):
        next(batches)
    batches._shutdown_workers()


class Absent(Marked):
    def __getitem__(self, index):
        with open("/nowhere/sample.bin", "rb") as file:
            return file.read()


def test_a_file_that_a_worker_cannot_find_is_the_very_error_it_is_without_us():
    def message(wrapped):
        loader = DataLoader(Absent(), num_workers=1)
        batches = iter(pipeprof.wrap(loader) if wrapped else loader)
        with pytest.raises(FileNotFoundError) as caught:
            next(batches)
        batches._shutdown_workers()
        return str(caught.value)

    assert message(wrapped=True) == message(wrapped=False)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_answers_oddly_to_unknown_names_is_left_in_peace(workers):
    assert len(list(pipeprof.wrap(DataLoader(Answering(), 4, num_workers=workers)))) == 10


def threads_of_worker(index):
    time.sleep(0.01)  # those that torch starts have started
    return threading.active_count(), len(os.listdir("/proc/self/task"))


class Threads(Marked):
    def __getitem__(self, index):
        return threads_of_worker(index)


def test_a_worker_has_the_threads_that_it_has_without_us():
    def last(loader):
        return list(loader)[-1]

    loaders = [DataLoader(Threads(), 1, num_workers=1, collate_fn=list) for _ in range(2)]
    assert last(pipeprof.wrap(loaders[0])) == last(loaders[1])


FREED = {
    "inline": {},
    "workers": {"num_workers": 2},
    "persistent": {"num_workers": 1, "persistent_workers": True},
}


@pytest.mark.parametrize("form", FREED)
def test_what_reads_files_in_main_is_as_it_was(form):
    def readers() -> list[Any]:
        classes = (fsspec.spec.AbstractFileSystem, fsspec.spec.AbstractBufferedFile)
        return [builtins.open, io.open, np.fromfile, *(dict(vars(kind)) for kind in classes)]

    before = readers()
    loader = pipeprof.wrap(DataLoader(Marked(), 4, **FREED[form]))
    for _ in range(2):
        list(loader)
        for _ in loader:
            break
    assert readers() == before
