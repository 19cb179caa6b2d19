"""Recommendations of a profile become settings to try."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.analyze.predict.workload import Setting
from pipeprof.loaders.tune.candidates import (
    Bounds,
    _applied,
    _cheapest_first,
    _explored,
    propose,
    with_values,
)
from pipeprof.loaders.tune.search import Candidate
from pipeprof.model import ReadOptions, Recommendation, Recording, TunedSetting

OWN = TunedSetting(1, 2)


class Slow(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.002)
        return torch.tensor([index])


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Of one worker that fetches far too slowly for its training step."""
    loader = pipeprof.wrap(DataLoader(Slow(), batch_size=4, num_workers=1), whole=True)
    for _ in loader:
        time.sleep(0.001)
    return loader.recording()


def recording_rate(recording: Recording) -> float:
    delivered = recording.batches.delivered_s
    return (len(delivered) - 1) / (delivered[-1] - delivered[0])


def test_a_slow_worker_is_helped_by_more(recording: Recording) -> None:
    candidates = propose(recording, OWN, Bounds())
    assert candidates[0].setting.num_workers > 2
    assert (candidates[0].batches_per_s or 0) > 1.5 * recording_rate(recording)


def test_what_is_fixed_is_not_changed(recording: Recording) -> None:
    assert all(
        each.setting.num_workers == 1
        for each in propose(recording, OWN, Bounds(frozenset({"num_workers"})))
    )


def test_prefetching_follows_the_workers() -> None:
    assert with_values(OWN, {"num_workers": 0}) == TunedSetting(0, None)
    assert with_values(TunedSetting(0, None), {"num_workers": 3}) == TunedSetting(3, 2)


def test_fewer_workers_that_are_as_fast_come_first() -> None:
    rates = {Setting(4, 2): 100.0, Setting(2, 4): 99.0, Setting(2, 2): 98.0, Setting(1, 2): 60.0}
    order = [each for each, _ in _cheapest_first(rates)]
    assert order == [Setting(2, 2), Setting(2, 4), Setting(4, 2), Setting(1, 2)]


def test_twice_and_half_the_workers_are_explored() -> None:
    simulated = [Candidate(TunedSetting(each, 2), 80.0) for each in (1, 2, 3, 4, 8)]
    found = [*_explored(simulated, TunedSetting(4, 2))]
    assert [each.setting.num_workers for each in found] == [8, 2]
    assert all(each.explores for each in found)
    assert [*_explored(simulated, TunedSetting(0, None))] == []


def test_more_prefetched_batches_are_explored() -> None:
    simulated = [Candidate(TunedSetting(4, each), 80.0) for each in (8, 2, 4)]
    found = [*_explored(simulated, TunedSetting(4, 2))]
    assert [each.setting for each in found] == [TunedSetting(4, 4), TunedSetting(4, 8)]


def advised(setting: str, proposed: str, own: TunedSetting, bounds: Bounds) -> list[TunedSetting]:
    return [*_applied(Recommendation(setting, "", proposed, why=""), own, bounds)]


@pytest.mark.parametrize(
    ("setting", "proposed", "becomes"),
    [
        ("num_workers", "4", TunedSetting(4, 2)),
        ("prefetch_factor", "8", TunedSetting(1, 8)),
        ("in_order", "False", TunedSetting(1, 2, in_order=False)),
        ("pin_memory + non_blocking", "True + True", TunedSetting(1, 2, pin_memory=True)),
        ("worker_init_fn", "1 thread in each worker", TunedSetting(1, 2, threads=1)),
    ],
)
def test_advice_becomes_a_setting(setting: str, proposed: str, becomes: TunedSetting) -> None:
    assert advised(setting, proposed, OWN, Bounds()) == [becomes]


def test_more_requests_are_tried_by_the_options_that_the_storage_has() -> None:
    reads = replace(OWN, read=ReadOptions(read_ahead=False))
    local = advised("concurrent requests", "8.0", reads, Bounds())
    assert [each.read for each in local] == [
        ReadOptions(),
        ReadOptions(read_ahead=False, queue_depth=16),
        ReadOptions(read_ahead=False, request_bytes=2**21),
    ]
    remote = advised("concurrent requests", "8.0", reads, Bounds(local=False, larger_blocks=True))
    assert [each.read for each in remote] == [
        ReadOptions(),
        ReadOptions(read_ahead=False, block_bytes=2**24),
    ]
    assert advised("concurrent requests", "8.0", OWN, Bounds()) == []


def test_more_workers_than_parts_are_not_tried() -> None:
    assert Bounds(most_workers=4).allow(TunedSetting(4, 2), OWN)
    assert not Bounds(most_workers=4).allow(TunedSetting(6, 2), OWN)


class InMemory(Dataset[int]):
    """A sample costs less than to send it."""

    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> int:
        return index


def test_no_workers_are_proposed_and_not_tried() -> None:
    loader = pipeprof.wrap(DataLoader(InMemory(), batch_size=4, num_workers=1), whole=True)
    for _ in loader:
        pass
    (inline,) = (
        each for each in propose(loader.recording(), OWN, Bounds()) if not each.setting.num_workers
    )
    assert inline.is_users_choice
    assert (inline.batches_per_s or 0) > 1.5 * recording_rate(loader.recording())
