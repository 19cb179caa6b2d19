"""Map-style loaders drawn at random, with samplers that draw random numbers early or late."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class Indices(Dataset[torch.Tensor]):
    """Sample *i* is the tensor ``[i]``."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index])


class Permutation(Sampler[int]):
    """Draws all its random numbers when it is asked for an iterator."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(self._length).tolist())

    def __len__(self) -> int:
        return self._length


def random_loader(random: Random) -> DataLoader[Any]:
    length = random.randrange(1, 60)
    options: dict[str, Any] = {"batch_size": random.choice([None, 1, 4])}
    if options["batch_size"]:
        options["drop_last"] = random.random() < 0.5
    workers = random.choice([0, 0, 1, 2])
    if workers:
        options |= {
            "num_workers": workers,
            "prefetch_factor": random.choice([1, 2, 3]),
            "persistent_workers": random.random() < 0.5,
        }
    options |= random.choice([
        {},
        {"shuffle": True},
        {"sampler": Permutation(length)},
        {"shuffle": True, "generator": torch.Generator().manual_seed(5)},
    ])  # fmt: skip
    return DataLoader(Indices(length), **options)
