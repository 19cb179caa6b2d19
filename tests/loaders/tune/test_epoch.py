"""An epoch that is carried from loader to loader yields what the user's loader would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.loaders.tune.left_open import LeftOpen
from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.variant import Variant
from pipeprof.model import TunedSetting
from tests.loaders.tune.random_loaders import random_loader

SETTINGS = [TunedSetting(0, None), TunedSetting(1, 3), TunedSetting(2, 2)]
Seen = list[tuple[list[Any], float]]
"""Per epoch: the batches, and the next random number of the training process."""


def two_epochs(batches: Callable[[], Iterable[torch.Tensor]]) -> Seen:
    return [([each.tolist() for each in batches()], torch.rand(1).item()) for _ in range(2)]


def carried(loader: DataLoader[Any], random: Random) -> Callable[[], Iterable[torch.Tensor]]:
    """Epochs of ``loader`` that switch between three settings at random batches."""
    order = EpochOrder(loader)
    variants = [Variant(loader, setting, order) for setting in SETTINGS]

    def epoch() -> Iterable[torch.Tensor]:
        seeds = order.begin()
        for variant in variants:
            variant.part.reset()
            variant.start(seeds)
        batches = CarriedEpoch(random.choice(variants), LeftOpen(forks=False))
        for batch in batches:
            yield batch
            if random.random() < 0.2 and not batches.switching:
                batches.switch(
                    random.choice([each for each in variants if each is not batches.current])
                )
        for variant in variants:
            variant.end()

    return epoch


@pytest.mark.parametrize("seed", range(20))
def test_batches_their_order_and_random_numbers_are_those_of_the_loader(seed: int) -> None:
    torch.manual_seed(seed)
    loader = random_loader(Random(seed))
    plain = two_epochs(lambda: loader)
    torch.manual_seed(seed)
    assert two_epochs(carried(random_loader(Random(seed)), Random(seed))) == plain
