"""The indices of one epoch, drawn once and handed out to one loader after another.

A loader with other settings has workers of its own. For each sample to come exactly once and in the
user's order, all loaders of an epoch draw from one iterator over the user's sampler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader


class EpochOrder:
    """Draws from the sampler of ``loader`` as that loader itself would.

    torch asks a sampler for its iterator once if it has no workers, and twice if it has. It draws a
    seed for the workers in between. Samplers that draw random numbers when they are asked would
    otherwise give another order.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        self._sampler: Any = loader._index_sampler
        self._indices: Iterator[Any] = iter(())
        self._returned: deque[Any] = deque()
        self._workers_started = False
        self._later_seeds = torch.Generator()

    def begin(self) -> torch.Generator:
        """Start an epoch.

        Returns:
            A generator whose next number is the seed that the user's workers would get.
        """
        loader = self._loader
        self._returned.clear()
        self._indices = iter(self._sampler)
        seeds = torch.Generator()
        running = self._workers_started and loader.persistent_workers
        if not running:
            user = loader.generator or torch.default_generator
            seeds.set_state(user.get_state())
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
            if loader.num_workers:
                self._indices = iter(self._sampler)
        self._workers_started = loader.num_workers > 0
        self._later_seeds.manual_seed(seeds.initial_seed() + 1)
        return seeds

    def later_seeds(self) -> torch.Generator:
        """Return the like for workers that start later in the epoch."""
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self._later_seeds))
        return torch.Generator().manual_seed(seed)

    def draw(self) -> Any:
        """Return the next indices. Raises `StopIteration` at the end of the epoch."""
        return self._returned.popleft() if self._returned else next(self._indices)

    def give_back(self, indices: list[Any]) -> None:
        """Let ``indices``, which were drawn last and not delivered, be drawn again."""
        self._returned.extendleft(reversed(indices))

    def __len__(self) -> int:
        return len(self._sampler)


class PartOfEpoch:
    """The sampler of one loader: draws from the shared order while it is open."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order
        self.is_open = False
        self._drawn = 0
        """Since it was opened last."""
        self._outstanding: dict[int, Any] = {}
        """Indices drawn and not yet delivered, by the number of the draw, oldest first."""

    @property
    def drained(self) -> bool:
        """Whether all that was drawn has been delivered."""
        return not self._outstanding

    def open(self) -> None:
        self.is_open, self._drawn = True, 0

    def close(self) -> None:
        """Draw no more. What was drawn is still delivered."""
        self.is_open = False

    def reset(self) -> None:
        """Close, and forget what an epoch that was left did not deliver."""
        self.is_open = False
        self._outstanding.clear()

    def delivered(self, expected: Container[int] = ()) -> None:
        """Note that a batch was delivered: the oldest whose number is not ``expected`` any more."""
        numbers = iter(self._outstanding)
        if expected:
            numbers = (each for each in numbers if each not in expected)
        del self._outstanding[next(numbers)]

    def give_back(self) -> None:
        """Close, and return to the shared order what was drawn and not delivered."""
        self.is_open = False
        self._order.give_back([*self._outstanding.values()])
        self._outstanding.clear()

    def __iter__(self) -> PartOfEpoch:
        return self

    def __next__(self) -> Any:
        if not self.is_open:
            raise StopIteration
        indices = self._order.draw()
        self._outstanding[self._drawn] = indices
        self._drawn += 1
        return indices

    def __len__(self) -> int:
        return len(self._order)
