"""One epoch over the user's data, handed from loader to loader without losing a batch."""

from __future__ import annotations

from typing import Any

from pipeprof.loaders.tune.variant import Variant


class CarriedEpoch:
    """Yields the batches of an epoch; `switch` lets another variant fetch the rest.

    After a switch, batches that the former variant's workers are fetching are delivered first.
    Meanwhile the next one fetches those that follow.
    """

    def __init__(self, first: Variant) -> None:
        self.current = self._next = first
        """``current``: where the batch that was delivered last came from."""
        first.part.open()
        self._iterator = self._next_iterator = first.fetch()

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

    def replace(self, variant: Variant) -> None:
        """Let ``variant`` fetch all that the present one drew and did not deliver, and the rest.

        For a variant that failed.
        """
        failed, self._next = self.current, variant
        if variant.part.is_open:  # it was fetching what follows: these indices come before
            variant.part.give_back()
        failed.part.give_back()
        variant.part.open()
        self.current, self._iterator = variant, variant.fetch()

    def __iter__(self) -> CarriedEpoch:
        return self

    def __next__(self) -> Any:
        if self.switching and self.current.part.drained:
            self.current, self._iterator = self._next, self._next_iterator
        batch = next(self._iterator)
        self.current.delivered()
        return batch

    def skip(self) -> None:
        """Continue behind a batch that failed, as torch does."""
        self.current.delivered()
