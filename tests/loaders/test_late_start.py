"""A loader is measured whole where another profiler has replaced its ``__iter__`` or ``fetch``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, _DatasetKind

import pipeprof
from pipeprof.loaders.instrument.fetcher_hooks import FetcherHooks
from pipeprof.measure.patches import all_reads
from pipeprof.measure.request_counts import RequestCounts
from pipeprof.measure.resource_sampler import ResourceSampler
from tests.loaders.forms import SAMPLES, Marked

BATCHES = SAMPLES // 4
_TORCHS_ITER = DataLoader.__iter__


def others_iter(loader: Any) -> Iterator[Any]:
    """As TraceML's: a generator around torch's iterator."""
    iterator = _TORCHS_ITER(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            break
        yield batch


class Patched(DataLoader):
    """A DataLoader whose ``__iter__`` was replaced, as another profiler replaces that of all."""

    __iter__ = others_iter


FORMS = [{"num_workers": 0}, {"num_workers": 2},
         {"num_workers": 2, "persistent_workers": True},
         {"num_workers": 2, "in_order": False}]  # fmt: skip


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_each_epoch_is_whole_and_batches_are_the_same(options: dict[str, Any]) -> None:
    def batches(loader: Any) -> list[list[float]]:
        torch.manual_seed(3)
        return [batch.flatten().tolist()[:4] for _ in range(3) for batch in loader]

    bare = Patched(Marked(), 4, shuffle=True, **options)
    loader = pipeprof.wrap(Patched(Marked(), 4, shuffle=True, **options), whole=True)
    assert len(batches(bare)) == len(batches(loader)) == 3 * BATCHES
    profile = loader.profile()
    assert {"fetch", "collate", "wait", "step"} <= profile.stages.keys()
    assert [epoch.batches for epoch in profile.epochs] == [BATCHES] * 3
    assert profile.lost_records == 0
    assert {each is None for each in profile.batches.fetch_start_s} == {False}


def test_the_order_and_randomness_are_those_without_us() -> None:
    def drawn(wrap: bool) -> list[int]:
        torch.manual_seed(7)
        loader: Any = Patched(range(40), 4, shuffle=True, num_workers=1)
        if wrap:
            loader = pipeprof.wrap(loader)
        found = [int(each) for _ in range(2) for batch in loader for each in batch]
        return [*found, int(torch.randint(1000, ()))]

    assert drawn(True) == drawn(False)


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_that_is_left_or_never_begun_leaves_the_next_one_whole(persistent: bool) -> None:
    bare = Patched(Marked(), 4, num_workers=1, persistent_workers=persistent)
    loader = pipeprof.wrap(bare, whole=True)
    iter(loader)
    for number, _ in enumerate(loader):
        if number == 3:
            break
    assert len(list(loader)) == BATCHES
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [0, 4, BATCHES]
    assert profile.lost_records == 0


def test_what_is_iterated_is_still_the_others_generator() -> None:
    iterator = iter(pipeprof.wrap(Patched(Marked(), 4)))
    assert iterator.gi_code is others_iter.__code__
    assert isinstance(iterator, GeneratorType)
    next(iterator)
    assert iterator.gi_code is others_iter.__code__
    assert isinstance(iterator, GeneratorType)


class Fails(Marked):
    def __getitem__(self, index: int) -> torch.Tensor:
        raise ValueError("of the data set")


def test_an_error_of_the_first_batch_comes_through() -> None:
    before = all_reads._users
    iterator = iter(pipeprof.wrap(Patched(Fails(), 4)))
    with pytest.raises(ValueError, match="of the data set"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)
    assert all_reads._users == before, "reads of this process are not recorded any more"


def test_a_loader_without_batches_has_a_pass_without_batches() -> None:
    before = all_reads._users
    loader = pipeprof.wrap(Patched([], 4))
    assert list(loader) == []
    assert [epoch.batches for epoch in loader.recording().epochs] == [0]
    assert all_reads._users == before


def test_a_loader_keeps_no_attribute_of_ours() -> None:
    bare = Patched(Marked(), 4)
    before = dict(vars(bare))
    list(pipeprof.wrap(bare))
    assert vars(bare) == before


SCRIPT = """
from torch.utils.data import DataLoader

def patch():
    torchs = DataLoader.__iter__
    def others(loader):
        yield from torchs(loader)
    DataLoader.__iter__ = others

if BEFORE:
    patch()
loader = DataLoader(range(40), 4, num_workers=1)
if not BEFORE:
    patch()
for _ in range(2):
    assert len(list(loader)) == 10
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_under_run_each_batch_is_measured_once(before: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("BEFORE", str(before)))
    command = [sys.executable, "-m", "pipeprof", "run", "train.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=100)
    (file,) = (tmp_path / "pipeprof-run").iterdir()
    profile = pipeprof.load(file)
    assert [epoch.batches for epoch in profile.epochs] == [10, 10]
    assert {"fetch", "transfer"} <= profile.stages.keys()


def test_tune_leaves_such_loaders_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataLoader, "__iter__", others_iter)
    loader = pipeprof.tune(DataLoader(Marked(), 4))
    assert len(list(loader)) == BATCHES
    assert loader.tuning().notes == ("another profiler has replaced the iterators of DataLoader",)


def test_another_profiler_of_a_fetcher_keeps_its_place_and_may_leave() -> None:
    """As LitData's does, which counts batches and then puts torch's method back."""
    fetcher = _DatasetKind.create_fetcher(_DatasetKind.Map, range(9), True, list, False)
    torchs, counted, records = fetcher.fetch, [], []

    def others_fetch(index: Any) -> Any:
        counted.append(index)
        if len(counted) == 2:
            fetcher.fetch = torchs
        return torchs(index)

    fetcher.fetch = others_fetch
    hooks = FetcherHooks(records.append, ResourceSampler(len), RequestCounts())
    hooks.attach(fetcher)
    hooks.set_active(True)
    hooks.set_active(False)
    assert fetcher.fetch is others_fetch
    hooks.set_active(True)
    assert [fetcher.fetch([number]) for number in range(4)] == [[0], [1], [2], [3]]
    assert counted == [[0], [1]]
    assert len(records) == 4
    hooks.set_active(False)
    assert fetcher.fetch == torchs
