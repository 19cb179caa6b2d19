"""Loaders of defined behaviour, with jitter, as workers with equal batches run in lockstep."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

BATCH_SIZE = 8
_SIGMA = 0.3


class Known(Dataset[Any]):
    """Does ``work`` for each sample, with a random generator and a number for that sample."""

    def __init__(self, work: Callable[[Random, int], Any], seed: int) -> None:
        self._work, self._seed = work, seed

    def __len__(self) -> int:
        return 10**7

    def __getitem__(self, index: int) -> Any:
        number = self._seed * 10**9 + index
        return self._work(Random(number), number)


def _sleep(chance: Random, mean_s: float) -> None:
    time.sleep(mean_s * chance.lognormvariate(-(_SIGMA**2) / 2, _SIGMA))


def _burn(chance: Random, mean_s: float) -> None:
    """Compute in numpy, which releases the interpreter lock only at times."""
    values = np.linspace(0.0, 1.0, 2000)
    for _ in range(round(mean_s / 10e-6 * chance.lognormvariate(-(_SIGMA**2) / 2, _SIGMA))):
        values = np.tanh(values)


def _count(chance: Random, mean_s: float) -> None:
    """Compute in Python, which holds the interpreter lock."""
    total = 0
    for number in range(round(mean_s / 30e-9 * chance.lognormvariate(-(_SIGMA**2) / 2, _SIGMA))):
        total += number


def _tensor() -> torch.Tensor:
    return torch.zeros(64)


def sleeping(chance: Random, _: int) -> torch.Tensor:
    _sleep(chance, 2e-3)
    return _tensor()


def computing(chance: Random, _: int) -> torch.Tensor:
    _burn(chance, 1.5e-3)
    return _tensor()


def counting(chance: Random, _: int) -> torch.Tensor:
    _count(chance, 1.5e-3)
    return _tensor()


def mixed(chance: Random, _: int) -> torch.Tensor:
    _sleep(chance, 1e-3)
    _burn(chance, 1e-3)
    return _tensor()


def heavy_tailed(chance: Random, _: int) -> torch.Tensor:
    time.sleep(min(0.2, 0.7e-3 * chance.paretovariate(1.5)))
    return _tensor()


def one_in_twenty(chance: Random, number: int) -> torch.Tensor:
    """Sleep. In every twenty batches, a random one has a slow sample."""
    _sleep(chance, 1e-3)
    batch, sample = divmod(number, BATCH_SIZE)
    twenty, place = divmod(batch, 20)
    if sample == 0 and place == Random(twenty).randrange(20):
        time.sleep(0.1)
    return _tensor()


def many_tensors(_: Random, __: int) -> dict[str, torch.Tensor]:
    return {str(number): torch.zeros(4) for number in range(40)}


PIPELINES: dict[str, Callable[[Random, int], Any]] = {
    "sleeping": sleeping,
    "computing": computing,
    "counting": counting,
    "mixed": mixed,
    "heavy-tailed": heavy_tailed,
    "one in twenty": one_in_twenty,
    "many tensors": many_tensors,
}
