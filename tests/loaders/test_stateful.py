"""torchdata's StatefulDataLoader has the same state with and without pipeprof, and its stages are
recorded."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import pipeprof
from tests.loaders.forms import SAMPLES, Marked, MarkedStream, bits, mark
from tests.support.requirements import missing

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

WORKERS = [0, 2]


@pytest.fixture(scope="module")
def stateful() -> Any:
    if importlib.util.find_spec("torchdata") is None:
        missing("torchdata, whose StatefulDataLoader is to be measured, is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("torchdata.stateful_dataloader").StatefulDataLoader


class Numbers(Marked):
    """Gives the same numbers in each run, so that states can be compared, and has a state of its
    own."""

    made = 0

    def __getitem__(self, index):
        self.made += 1
        return torch.tensor([index])

    def state_dict(self):
        return {"made": self.made}

    def load_state_dict(self, state):
        self.made = state["made"]


class Stream(IterableDataset):
    """Yields each worker's share, from where its state says."""

    def __init__(self) -> None:
        self.done = 0

    def __iter__(self):
        info = get_worker_info()
        mine = range(info.id if info else 0, SAMPLES, info.num_workers if info else 1)
        for index in mine[self.done :]:
            self.done += 1
            yield torch.tensor([index])
        self.done = 0

    def state_dict(self):
        return {"done": self.done}

    def load_state_dict(self, state):
        self.done = state["done"]


def delivered(loader: Any) -> list[Any]:
    """Return states and batches before an epoch, in it, after it, and in a next one that is
    left."""
    torch.manual_seed(0)
    seen = [bits(loader.state_dict())]
    for number, batch in enumerate(loader):
        seen.append(bits(batch))
        if number in (0, 4):
            seen.append(bits(loader.state_dict()))
    seen.append(bits(loader.state_dict()))
    for _ in loader:
        break
    return [*seen, bits(loader.state_dict())]


DATASETS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "map": (Numbers, {}),
    "shuffled": (Numbers, {"shuffle": True}),
    "iterable": (Stream, {}),
    "snapshots": (Numbers, {"snapshot_every_n_steps": 3}),
}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("form", DATASETS)
def test_its_state_is_the_same_before_during_and_after(stateful, form, workers):
    dataset, options = DATASETS[form]

    def loader():
        torch.manual_seed(0)  # of which a sampler is made
        return stateful(dataset(), 4, num_workers=workers, **options)

    assert delivered(pipeprof.wrap(loader())) == delivered(loader())


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("form", DATASETS)
def test_it_resumes_with_and_without_us_where_it_was(stateful, form, workers):
    dataset, options = DATASETS[form]

    def run(wrapped):
        loader = stateful(dataset(), 4, num_workers=workers, **options)
        return pipeprof.wrap(loader) if wrapped else loader

    torch.manual_seed(0)
    whole = bits(list(run(wrapped=True)))
    torch.manual_seed(0)
    first = run(wrapped=True)
    batches = iter(first)
    for _ in range(4):
        next(batches)
    state = first.state_dict()
    for wrapped in (False, True):
        again = run(wrapped)
        again.load_state_dict(state)
        assert bits(list(again)) == whole[4:]
        assert len(list(again)) == len(whole), "the next epoch is a whole one"


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("dataset", [Marked, MarkedStream])
def test_the_stages_of_each_batch_are_seen(stateful, dataset, persistent):
    own = stateful(dataset(), 4, num_workers=2, persistent_workers=persistent)
    loader = pipeprof.wrap(own, whole=True)
    loader.state_dict()  # which starts the workers
    count = sum(1 for _ in range(2) for _ in loader)
    profile = loader.profile()
    assert count == profile.warmup_batches + profile.measured_batches == 2 * SAMPLES // 4
    assert profile.lost_records == 0
    assert profile.stages["fetch"].count == profile.measured_batches
    assert profile.stages["serialise"].count == profile.measured_batches


@pytest.mark.parametrize("persistent", [False, True])
def test_the_stages_are_seen_after_it_resumed_at_the_end_of_an_epoch(stateful, persistent):
    def loader():
        own = stateful(Marked(), 4, num_workers=2, persistent_workers=persistent)
        return pipeprof.wrap(own, whole=True)

    first, again = loader(), loader()
    list(first)
    again.load_state_dict(first.state_dict())
    assert [len(list(again)) for _ in range(2)] == [10, 10]
    profile = again.profile()
    assert profile.lost_records == 0
    assert profile.stages["fetch"].count == profile.measured_batches


def test_what_cannot_be_seen_after_it_resumed_between_snapshots_is_said(stateful):
    """On creation it takes the batches since its last snapshot once more."""

    def loader():
        inner = stateful(Marked(), 4, num_workers=2, snapshot_every_n_steps=4)
        return pipeprof.wrap(inner)

    first, again = loader(), loader()
    batches = iter(first)
    for _ in range(6):
        next(batches)
    again.load_state_dict(first.state_dict())
    assert len(list(again)) == 4
    assert "resumed" in again.profile().missing["fetch"]
    assert again.profile().lost_records == 0


def test_it_passes_for_what_it_is(stateful):
    from torchdata.stateful_dataloader import Stateful

    inner = stateful(Numbers())
    loader = pipeprof.wrap(inner)
    assert isinstance(loader, stateful)
    assert isinstance(loader, Stateful)
    assert not hasattr(pipeprof.wrap(DataLoader(Numbers())), "state_dict")


class Broken(Marked):
    def __getitem__(self, index):
        if index == 6:
            raise LookupError("sample 6 is bad")
        return mark(index)


def test_a_workers_error_has_the_very_text_it_has_without_us(stateful):
    def message(wrapped):
        loader = stateful(Broken(), 4, num_workers=1)
        batches = iter(pipeprof.wrap(loader) if wrapped else loader)
        with pytest.raises(LookupError, match="Original Traceback") as caught:
            list(batches)
        batches._shutdown_workers()
        return str(caught.value)

    assert message(wrapped=True) == message(wrapped=False)
