"""A data set for tests of tuning, and loaders for which given settings are tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from pipeprof.loaders.tune.agreement import terms_of
from pipeprof.loaders.tune.live_search import Propose
from pipeprof.loaders.tune.search import Candidate
from pipeprof.loaders.tune.tuned_loader import TunedLoader, stand_in
from pipeprof.loaders.tune.tuner import Tuner
from pipeprof.loaders.tune.variant import setting_of
from pipeprof.model import Recording, TunedSetting


class Slow(Dataset[torch.Tensor]):
    """Each sample waits 1 ms."""

    def __init__(self, length: int = 1600) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.001)
        return torch.tensor([index])


def samples(loader: Any, step_s: float = 0.0) -> list[int]:
    found: list[int] = []
    for batch in loader:
        found += batch.flatten().tolist()
        time.sleep(step_s)
    return found


def tuned(loader: DataLoader[Any], *candidates: TunedSetting, **options: Any) -> TunedLoader:
    """``loader``, for which these settings are tried."""

    def propose(recording: Recording, now: TunedSetting) -> Callable[[], Sequence[Candidate]]:
        return lambda: [Candidate(setting) for setting in candidates]

    return tuned_by(loader, propose, **options)


def tuned_by(loader: DataLoader[Any], propose: Propose, **options: Any) -> TunedLoader:
    own = setting_of(loader)
    return stand_in(loader, Tuner(loader, propose, 1.0, terms_of(loader, own), own, **options))
