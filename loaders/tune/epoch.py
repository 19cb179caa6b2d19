"""One epoch over the user's data, handed from loader to loader without losing a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeprof.loaders.tune.left_open import LeftOpen
from pipeprof.loaders.tune.variant import Variant


class CarriedEpoch:
    """Yields the batches of an epoch; `switch` lets another variant fetch the rest.

    After a switch, batches that the former variant's workers are fetching are delivered first.
    Meanwhile the next one fetches those that follow.
    """

    def __init__(self, first: Variant, left_open: LeftOpen) -> None:
        self._left_open = left_open
        self.current = self._next = first
        """``current``: where the batch that was delivered last came from."""
        first.part.open()
        self._iterator: Iterator[Any] = first.fetch()
        self._next_iterator = self._iterator

    @property
    def switching(self) -> bool:
        """Whether batches of the former variant are still delivered."""
        return self._next is not self.current

    def switch(self, variant: Variant) -> None:
        """Let ``variant`` fetch all further batches.

        Raises:
            Exception: What its start raises. The present variant then continues.
        """
        self.current.part.close()
        variant.part.open()
        try:
            self._next_iterator = variant.fetch()
        except BaseException:
            variant.part.give_back()
            self.current.part.open()
            raise
        self._next = variant

    def give_up(self) -> None:
        """Return all that was drawn and not delivered, and let go of the loaders that drew it."""
        for each in (self._next, self.current):  # what the next one drew comes later
            each.part.give_back()
        self._iterator = self._next_iterator = iter(())

    def resume(self, variant: Variant) -> None:
        """After `give_up`, let ``variant`` fetch the rest."""
        variant.part.open()
        self.current = self._next = variant
        self._iterator = variant.fetch()

    def __iter__(self) -> CarriedEpoch:
        return self

    def __next__(self) -> Any:
        if self.switching and self.current.part.drained:
            self.current, self._iterator = self._next, self._next_iterator
        if self.current.setting.num_workers:
            batch = next(self._iterator)
        else:
            batch = self._left_open.next(self._iterator)
        self.current.delivered()
        return batch

    def skip(self) -> None:
        """Continue behind a batch that failed, as torch does."""
        self.current.delivered()
