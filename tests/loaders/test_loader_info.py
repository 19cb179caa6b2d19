"""What is read from a loader before a pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

from pipeprof.loaders.instrument.loader_info import describe_loader

DATA = torch.arange(12)


class Own(Sampler[Any]):
    def __iter__(self) -> Any:
        return iter([0, 1])


class Endless(IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(3))


@pytest.mark.parametrize(
    ("options", "sampler"),
    [
        ({}, "torch.utils.data.sampler.SequentialSampler"),
        ({"shuffle": True}, "torch.utils.data.sampler.RandomSampler"),
        ({"batch_size": None}, "torch.utils.data.sampler.SequentialSampler"),
        ({"sampler": Own()}, f"{__name__}.Own"),
        ({"batch_sampler": BatchSampler(RandomSampler(DATA), 4, False)},
         "torch.utils.data.sampler.RandomSampler"),
        ({"batch_sampler": [[0, 1], [2]]}, "builtins.list"),
    ],
)  # fmt: skip
def test_who_picks_the_indices(options: dict[str, Any], sampler: str) -> None:
    data: Any = DATA
    assert describe_loader(DataLoader(data, **options)).config.sampler == sampler


def test_nobody_does_for_an_iterable_or_another_loader() -> None:
    assert describe_loader(DataLoader(Endless())).config.sampler is None
    assert describe_loader(SequentialSampler(DATA)).config.sampler is None
