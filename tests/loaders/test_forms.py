"""Every kind of loader has its stages recorded, batch by batch."""

from __future__ import annotations

import random
import sys
from contextlib import suppress

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Subset
from torch.utils.data.datapipes.iter import IterableWrapper

import pipeprof
from pipeprof.loaders.instrument import worker_sender
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.pipelines.observer import LIBRARIES
from pipeprof.measure.clock import FakeClock
from tests.loaders.forms import (
    SAMPLES,
    Backwards,
    Dali,
    Growing,
    Marked,
    MarkedItems,
    MarkedStream,
    Pipeline,
    assert_recorded,
    mark,
    pretend_accelerator,
    profiled,
    whose,
)

WORKERS = {"num_workers": 2}


def seeded(worker):
    random.seed(worker)


class Within(IterableDataset):
    """Iterates a loader of its own."""

    def __iter__(self):
        yield from DataLoader(MarkedStream(), batch_size=None)


def subset():
    return Subset(Marked(), range(3, 25))


def datapipe():
    return IterableWrapper(range(SAMPLES)).map(mark)


FORMS = {
    "map": (Marked, {}),
    "map, workers": (Marked, WORKERS),
    "__getitems__": (MarkedItems, {}),
    "__getitems__, workers": (MarkedItems, WORKERS),
    "iterable": (MarkedStream, {}),
    "iterable, workers": (MarkedStream, WORKERS),
    "subset, workers": (subset, WORKERS),
    "a loader within, workers": (Within, WORKERS),
    "a loader within": (Within, {}),
    "datapipe, workers": (datapipe, {**WORKERS, "persistent_workers": True}),
    "sampler": (Marked, {**WORKERS, "sampler": Backwards()}),
    "batch_sampler": (Marked, {**WORKERS, "batch_size": 1, "batch_sampler": Growing()}),
    "batch_sampler, inline": (
        Marked,
        {"batch_size": 1, "batch_sampler": BatchSampler(Backwards(), 4, drop_last=True)},
    ),
    "collate": (Marked, {**WORKERS, "collate_fn": torch.stack}),
    "no batches": (Marked, {**WORKERS, "batch_size": None}),
    "no batches, inline": (Marked, {"batch_size": None}),
    "no batches, iterable": (MarkedStream, {**WORKERS, "batch_size": None}),
    "worker_init_fn": (
        Marked,
        {**WORKERS, "shuffle": True, "worker_init_fn": seeded, "generator": torch.Generator()},
    ),
    "prefetch": (Marked, {**WORKERS, "prefetch_factor": 5}),
    "any order": (Marked, {**WORKERS, "in_order": False}),
    "any order, iterable": (MarkedStream, {**WORKERS, "in_order": False}),
    "timeout": (Marked, {**WORKERS, "timeout": 60}),
    "drop_last": (Marked, {**WORKERS, "batch_size": 7, "drop_last": True}),
    "more workers than batches": (Marked, {"num_workers": 2, "batch_size": 30}),
    "persistent": (Marked, {**WORKERS, "persistent_workers": True}),
    "persistent, iterable": (MarkedStream, {**WORKERS, "persistent_workers": True}),
    "persistent, any order": (
        Marked,
        {**WORKERS, "persistent_workers": True, "in_order": False},
    ),
    "fork": (Marked, {**WORKERS, "multiprocessing_context": "fork"}),
    "forkserver": (
        Marked,
        {"num_workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True},
    ),
    "spawn": (
        MarkedStream,
        {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_batch_has_its_own_record_in_each_epoch(form):
    dataset, options = FORMS[form]
    options = {"batch_size": 4, **options}
    loader = pipeprof.wrap(DataLoader(dataset(), **options), whole=True)
    epochs = [list(loader) for _ in range(2)]
    batches = [batch for epoch in epochs for batch in epoch]
    workers = options.get("num_workers", 0)
    assert_recorded(loader, batches, sent=workers > 0)

    profile = loader.profile()
    assert profile.lost_records == 0
    assert [epoch.batches for epoch in profile.epochs] == [len(epoch) for epoch in epochs]
    assert all(epoch.closing_s >= 0 for epoch in profile.epochs)
    measured = profile.measured_batches
    assert measured + profile.warmup_batches == len(batches)
    seen = {"fetch", "collate"} | ({"serialise", "unpickle"} if workers else set())
    assert {stage: profile.stages[stage].count for stage in seen} == dict.fromkeys(seen, measured)
    assert sum(worker.batches for worker in profile.workers) == measured
    assert {worker.index for worker in profile.workers} <= {whose(batch) for batch in batches}
    iterable = isinstance(loader.dataset, IterableDataset)
    assert profile.config.kind == ("iterable" if iterable else "map")


@pytest.mark.parametrize("dataset", [Marked, MarkedStream])
def test_pinned_batches_have_their_records_in_each_epoch(dataset, monkeypatch):
    pretend_accelerator(monkeypatch, pin_s=0.001)
    settings = {"num_workers": 1, "pin_memory": True, "persistent_workers": True}
    loader = pipeprof.wrap(DataLoader(dataset(), 4, **settings), whole=True)
    batches = [batch for _ in range(3) for batch in loader]
    # the thread waits for the first batch before it can be hooked
    assert_recorded(loader, batches, first_arrival=False)
    profile = loader.profile()
    assert profile.lost_records == 0
    assert profile.stages["pin"].count == profile.measured_batches


def test_where_the_sending_is_not_seen_slack_is_an_estimate(monkeypatch):
    def origins():
        loader = pipeprof.wrap(DataLoader(Marked(), 2, num_workers=1), whole=True)
        list(loader)
        return {name: stage.source for name, stage in loader.profile().stages.items()}

    assert set(origins().values()) == {"measured"}
    monkeypatch.setattr(worker_sender, "note_sent", lambda *_: None)
    estimated = origins()
    assert "serialise" not in estimated
    assert [name for name, source in estimated.items() if source != "measured"] == [
        "reorder", "ready",
    ]  # fmt: skip


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("dataset", [Marked, MarkedStream])
def test_an_epoch_that_is_left_does_not_confuse_the_next(dataset, persistent):
    options = {"prefetch_factor": 4, "persistent_workers": persistent}
    loader = pipeprof.wrap(DataLoader(dataset(), 4, num_workers=2, **options), whole=True)
    batches = []
    for stop in (1, 3, 100):
        for number, batch in enumerate(loader, 1):
            batches.append(batch)
            if number == stop:
                break
    assert_recorded(loader, batches)
    profile = loader.profile()
    assert [epoch.batches for epoch in profile.epochs] == [1, 3, SAMPLES // 4]
    assert [epoch.closing_s is None for epoch in profile.epochs] == [True, True, False]


def test_a_persistent_loader_that_also_runs_without_us_is_seen_when_it_runs_with_us():
    inner = DataLoader(Marked(), 4, num_workers=2, persistent_workers=True)
    loader = pipeprof.wrap(inner, whole=True)
    batches = list(loader)
    for _ in inner:
        break
    list(inner)
    batches += list(loader)
    assert_recorded(loader, batches)
    assert loader.profile().lost_records == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_raises_is_passed_over(workers):
    class Torn(Marked):
        def __getitem__(self, index):
            if index in (5, 18, 19):
                raise LookupError(index)
            return super().__getitem__(index)

    loader = pipeprof.wrap(DataLoader(Torn(), 4, num_workers=workers), whole=True)
    iterator, batches = iter(loader), []
    for _ in range(10):
        with suppress(LookupError):
            batches.append(next(iterator))
    assert list(iterator) == []
    assert len(batches) == 8
    assert_recorded(loader, batches, sent=workers > 0)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_profile_may_be_asked_for_at_any_time(workers):
    loader = pipeprof.wrap(DataLoader(Marked(), 4, num_workers=workers), whole=True)
    assert loader.profile().diagnosis.verdict == "inconclusive"
    batches = []
    for _ in range(2):
        for batch in loader:
            batches.append(batch)
            assert loader.profile().lost_records == 0
    assert_recorded(loader, batches, sent=workers > 0)


def test_passes_over_one_loader_may_lie_within_one_another():
    loader = pipeprof.wrap(DataLoader(Marked(), 20, num_workers=1), whole=True)
    batches = []
    for outer in loader:
        batches += [outer, *loader]
    assert_recorded(loader, batches)
    assert sorted(epoch.batches for epoch in loader.profile().epochs) == [2, 2, 2]


def test_two_loaders_at_once_are_told_apart_by_name():
    train = pipeprof.wrap(DataLoader(Marked(), 4, num_workers=1), name="train")
    validation = pipeprof.wrap(DataLoader(MarkedStream(), 10), name="validation")
    seen = list(zip(train, validation, strict=False))
    assert_recorded(validation, [batch for _, batch in seen], sent=False)
    profiles = [train.profile(), validation.profile()]
    assert [profile.name for profile in profiles] == ["train", "validation"]
    assert [profile.config.num_workers for profile in profiles] == [1, 0]
    assert [sum(epoch.batches for epoch in profile.epochs) for profile in profiles] == [5, 4]


def test_a_framework_may_make_the_loader_anew():
    first = pipeprof.wrap(DataLoader(Marked(), 4))
    arguments = {name: getattr(first, name) for name in ("dataset", "batch_size", "collate_fn")}
    again = pipeprof.wrap(DataLoader(**arguments, num_workers=1))
    assert_recorded(again, list(again))
    assert not first.profile().epochs


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loader_that_is_rebuilt_for_each_epoch_is_seen_in_each(persistent):
    watch = LoaderProfiler("train.py:42", whole=True)
    for _ in range(3):
        rebuilt = DataLoader(Marked(), 4, num_workers=1, persistent_workers=persistent)
        list(watch.iterate(rebuilt, lambda made=rebuilt: iter(made)))
        del rebuilt  # the iterator that it kept goes with it
    log = watch.recording().batches
    assert set(log.epoch) == {0, 1, 2}
    assert None not in log.fetch_start_s
    assert watch.recording().lost_records == 0


def of_generator(batches, pause_s, clock):
    return (batch for batch in Pipeline(batches, pause_s, clock))


GENERATORS = {"generator": of_generator, "its __iter__": Pipeline}


@pytest.mark.parametrize("kind", GENERATORS)
def test_what_a_generator_does_is_fetching(kind, monkeypatch):
    for library in LIBRARIES:  # other tests may have imported those that it may hold
        monkeypatch.delitem(sys.modules, library, raising=False)
    clock = FakeClock()
    loader = profiled(GENERATORS[kind](20, 0.005, clock), clock)
    for _ in loader:
        clock.sleep(0.001)
    profile = loader.profile()
    assert profile.stages["fetch"].p50_s == pytest.approx(0.005)
    assert profile.stages["step"].p50_s == pytest.approx(0.001)
    assert "fetch" in profile.blame
    assert set(profile.blame) <= {"fetch", "worker-cpu"}  # the latter, where it has no core
    assert (profile.config.kind, profile.lost_records) == ("other", 0)


def test_any_other_iterable_gives_the_host_side():
    clock = FakeClock()
    inner = Dali(20, 0.005, clock)
    loader = profiled(inner, clock)
    for batch in loader:
        del batch
        clock.sleep(0.001)
    profile = loader.profile()
    assert profile.stages["wait"].p50_s == pytest.approx(0.005)
    assert profile.stages["step"].p50_s == pytest.approx(0.001)
    assert set(profile.stages) == {"wait", "step"}
    assert set(profile.missing) >= {"fetch", "collate", "transfer"}
    assert f"{type(inner).__name__} is not a torch DataLoader" in profile.missing["fetch"]
    assert profile.throughput.samples_per_s == pytest.approx(8 * profile.throughput.batches_per_s)
    assert set(profile.blame) == {"unknown"}
    assert (profile.config.kind, profile.lost_records) == ("other", 0)


def test_an_iterator_with_a_reset_gives_as_many_epochs_as_it_has():
    loader = pipeprof.wrap(Dali(5, 0.0))
    for _ in range(3):
        assert len(list(loader)) == 5
        loader.reset()
    assert next(loader)[0]["label"].shape == (8,), "as DALI's users call it"
    assert [epoch.batches for epoch in loader.profile().epochs][:3] == [5, 5, 5]


def test_a_list_of_batches_and_an_iterator_that_is_spent():
    batches = [torch.zeros(4)] * 12
    loader = pipeprof.wrap(batches)
    assert list(loader) == batches
    assert loader.profile().measured_batches == 11
    spent = iter(batches)
    list(spent)
    profile = pipeprof.wrap(spent).profile()
    assert profile.diagnosis.verdict == "inconclusive"
    assert "no batch was measured" in profile.diagnosis.headline
