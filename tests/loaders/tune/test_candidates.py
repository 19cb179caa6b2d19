"""Recommendations of a profile become settings to try."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.loaders.tune.candidates import propose, with_values
from pipeprof.model import Recording, TunedSetting

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


def test_a_slow_worker_is_helped_by_more(recording: Recording) -> None:
    candidates = propose(recording, OWN, fixed=())
    assert candidates[0].setting.num_workers > 2
    assert candidates[0].setting.prefetch_factor == 2


def test_what_is_fixed_is_not_changed(recording: Recording) -> None:
    assert all(
        each.setting.num_workers == 1 for each in propose(recording, OWN, fixed={"num_workers"})
    )


def test_prefetching_follows_the_workers() -> None:
    assert with_values(OWN, {"num_workers": 0}) == TunedSetting(0, None)
    assert with_values(TunedSetting(0, None), {"num_workers": 3}) == TunedSetting(3, 2)
