"""A tuned loader that a framework inspects, rebuilds or contains is tuned where it is iterated."""

from __future__ import annotations

import gc
import inspect
import pickle
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader, IterableDataset

import pipeprof
from pipeprof.integrations.profiled_loaders import ProfiledLoaders
from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.autopatch.session import Session
from pipeprof.loaders.tune.tuned_loader import TunedLoader
from tests.loaders.forms import prepared
from tests.loaders.tune.tuned import Slow, samples

ALL = [*range(1200)]


def loader_of(workers: int = 1) -> DataLoader[Any]:
    return DataLoader(Slow(len(ALL)), 8, num_workers=workers)


class Contains:
    """Yields the batches of a DataLoader that it contains, as Accelerate's and Fabric's loaders."""

    def __init__(self, loader: Any) -> None:
        self._dataloader = loader

    def __iter__(self) -> Any:
        yield from self._dataloader


def is_tuned(loader: TunedLoader) -> bool:
    """Return whether the rate of its batches was measured, which is how a search begins."""
    return loader.tuning().state != "off" and loader.tuning().before is not None


@pytest.mark.parametrize("first", ["tune", "contain"])
def test_a_loader_that_contains_it_is_tuned_either_way(first: str) -> None:
    if first == "tune":
        tuned = pipeprof.tune(loader_of())
        iterated: Any = Contains(tuned)
    else:
        iterated = tuned = pipeprof.tune(Contains(loader_of()))
    assert samples(iterated) == ALL
    assert is_tuned(tuned)
    assert tuned.tuning().own.num_workers == 1


def test_what_a_framework_builds_instead_is_tuned() -> None:
    tuned = pipeprof.tune(loader_of())
    rebuilt = prepared(tuned)
    assert type(rebuilt) is DataLoader
    assert samples(rebuilt) == ALL
    assert is_tuned(tuned)


def test_also_where_the_script_keeps_nothing_else() -> None:
    rebuilt: Any = prepared(pipeprof.tune(loader_of()))
    gc.collect()
    assert samples(rebuilt) == ALL
    tuner = rebuilt._tuner_of_pipeprof
    assert tuner.tuning().before is not None
    gone = weakref.ref(rebuilt)
    del rebuilt, tuner
    gc.collect()
    assert gone() is None, "nothing of ours keeps a loader alive"


def test_what_is_built_instead_and_cannot_be_tuned_is_left_as_it_is_and_said_to_be() -> None:
    class Rows(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(8))

    data = Slow(8)
    tuned = pipeprof.tune(DataLoader(data, 8, num_workers=1))
    stream = Rows()
    stream.dataset = data  # type: ignore[attr-defined]  # as Accelerate's, which divide the rows
    assert [each.tolist() for each in prepared(tuned, dataset=stream)] == [[*range(8)]]
    assert tuned.tuning().state == "off"
    assert "its data set is iterable" in tuned.tuning().notes[0]


def test_it_has_the_profile_of_the_setting_in_use() -> None:
    tuned = pipeprof.tune(loader_of(), name="train")
    assert pipeprof.wrap(tuned) is tuned, "so it is not measured twice"
    assert samples(tuned) == ALL
    profile = tuned.profile()
    assert profile.name == "train"
    assert profile.config.num_workers == tuned.tuning().chosen.num_workers
    assert profile.measured_batches > 0
    assert "fetch" in profile.stages


def test_a_loader_that_is_not_tuned_is_measured_all_the_same() -> None:
    left_alone = pipeprof.tune(DataLoader(Slow(800), 8, num_workers=1), exact=True, name="valid")
    rows = pipeprof.tune([1, 2, 3] * 10, name="rows")
    for loader, batches in ((left_alone, 100), (rows, 30)):
        assert len(list(loader)) == batches
        assert loader.profile().throughput.batches_per_s > 0
    assert rows.profile().name == "rows"
    assert "list is not a torch DataLoader" in str(rows.tuning())


def test_a_copy_in_another_process_is_the_loader_itself() -> None:
    copied = pickle.loads(pickle.dumps(pipeprof.tune(loader_of())))
    assert type(copied) is DataLoader


def test_a_framework_may_inspect_it_and_make_another_of_its_type() -> None:
    """Lightning does so to predict, and where it injects a sampler."""
    inner = loader_of()
    tuned = pipeprof.tune(inner)
    assert vars(tuned) is vars(inner)
    assert inspect.signature(tuned.__init__) == inspect.signature(inner.__init__)
    another = type(tuned)(dataset=inner.dataset, batch_size=8)
    assert type(another) is DataLoader
    assert samples(another) == ALL


def test_what_is_built_for_another_purpose_later_is_not_tuned() -> None:
    tuned = pipeprof.tune(loader_of())
    assert samples(tuned) == ALL
    before = tuned.tuning()
    assert samples(prepared(tuned)) == ALL
    assert tuned.tuning() == before


def test_the_loader_itself_is_tuned_also_where_one_that_was_built_came_first() -> None:
    tuned = pipeprof.tune(loader_of())
    validated = iter(prepared(tuned))
    next(validated)
    del validated
    assert tuned.tuning().before is None
    assert samples(tuned) == ALL
    assert is_tuned(tuned)


def test_a_second_epoch_within_the_first_under_pipeprof_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as without tuning; Lightning leaves the epoch of its sanity check open."""

    session = Session(CallSites(str(tmp_path)), tune=lambda name, each: pipeprof.tune(each))
    monkeypatch.setattr(DataLoader, "__iter__", DataLoader.__iter__)
    monkeypatch.setattr(DataLoader, "__init__", DataLoader.__init__)
    session._hook_class(DataLoader)
    loader = loader_of()
    open_epoch = iter(loader)
    first = next(open_epoch).flatten().tolist()
    assert samples(loader) == ALL
    assert first + samples(open_epoch) == ALL
    assert session.problems == []
    (tuning,) = session.tunings().values()
    assert tuning.before is not None


def test_a_callback_that_profiles_all_loaders_leaves_it_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tuned, loaders = pipeprof.tune(loader_of()), ProfiledLoaders()
    assert loaders.wrap(tuned, "train") is tuned
    assert "train: this loader is tuned" in capsys.readouterr().err
    loaders.measure(rebuilt := prepared(tuned), "rebuilt")
    assert samples(rebuilt) == ALL
    assert is_tuned(tuned)
    assert not loaders.profiles
