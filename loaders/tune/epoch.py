"""One epoch over the user's data, handed from loader to loader without losing a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
        self._fetch = self._next_fetch = self._batches_of(first)

    def _batches_of(self, variant: Variant) -> Callable[[], Any]:
        """Return a function that fetches the next batch of ``variant``."""
        batches = variant.fetch()
        if variant.setting.num_workers:
            return partial(next, batches)
        return partial(self._left_open.next, batches)

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
            self._next_fetch = self._batches_of(variant)
        except BaseException:
            variant.part.give_back()
            self.current.part.open()
            raise
        self._next = variant

    def give_up(self) -> None:
        """Return all that was drawn and not delivered, and let go of the loaders that drew it."""
        for each in (self._next, self.current):  # what the next one drew comes later
            each.part.give_back()
        self._fetch = self._next_fetch = partial(next, iter(()))

    def resume(self, variant: Variant) -> None:
        """After `give_up`, let ``variant`` fetch the rest."""
        variant.part.open()
        self.current = self._next = variant
        self._fetch = self._batches_of(variant)

    def __iter__(self) -> CarriedEpoch:
        return self

    def __next__(self) -> Any:
        if self._next is not self.current and self.current.part.drained:
            self.current, self._fetch = self._next, self._next_fetch
        batch = self._fetch()
        self.current.delivered()
        return batch

    def skip(self) -> None:
        """Continue behind a batch that failed, as torch does."""
        self.current.delivered()
