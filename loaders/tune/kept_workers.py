"""Decides whether workers may stay between epochs, where the user's loader would start new ones.

New workers get a copy of the data set as it is then. Workers that stay keep the copy of before, so
they may stay only while the data set does not change.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.log import log_caught

_log = logging.getLogger(__name__)

_WORTH = 0.01
"""Workers stay where starting them takes at least this share of an epoch."""
_MOST_S = 0.05
"""A data set that takes longer to compare is not compared, so its workers do not stay."""


class KeptWorkers:
    """The decision for one loader, epoch by epoch."""

    def __init__(self, loader: DataLoader[Any], allowed: bool, now: Callable[[], float]) -> None:
        """``allowed``: Whether the user leaves it open."""
        self._loader, self._now = loader, now
        self._may_stay = allowed and not isinstance(loader.dataset, IterableDataset)
        self._copied: bytes | None = None
        """Digest of what the workers have a copy of."""
        self._stay = self._stayed = False
        """Whether workers run on after this epoch, and whether they did after the last one."""
        self._begun_s = self._ready_s = 0.0
        self._awaits_first = False
        """Whether the epoch has not delivered a batch yet."""
        self.started_s: float | None = None
        """What the last start of workers took, until the first batch came."""
        self.continued_s: float | None = None
        """What it took in the last epoch for which workers stayed."""

    @property
    def note(self) -> str:
        """What it is worth that workers stay, in words; empty where they did not."""
        if self.continued_s is None or self.started_s is None:
            return ""
        return (
            "workers stay between epochs, as the data set did not change: the first batch took "
            f"{self.continued_s:.2f} s, {self.started_s:.2f} s with a start"
        )

    def begin(self) -> bool:
        """Begin an epoch. Return whether workers of the last one may be used."""
        self._begun_s = self._ready_s = self._now()
        self._awaits_first = True
        data = self._digest() if self._may_stay else None
        self._stayed = self._stay and data is not None and data == self._copied
        self._copied = data
        return self._stayed

    def delivered(self) -> None:
        """Note that batches came. Only the first ones of an epoch matter."""
        if not self._awaits_first:
            return
        self._awaits_first, self._ready_s = False, self._now()
        if self._stayed:
            self.continued_s = self._ready_s - self._begun_s
        else:
            self.started_s = self._ready_s - self._begun_s

    def end(self, workers_started: bool) -> bool:
        """End an epoch. Return whether the workers should stay.

        Args:
            workers_started: Whether the epoch began by starting the workers that run now.
        """
        took_s, epoch_s = self._ready_s - self._begun_s, self._now() - self._begun_s
        worth = self._stayed or (workers_started and took_s >= _WORTH * epoch_s)
        self._stay = worth and self._copied is not None
        return self._stay

    def _digest(self) -> bytes | None:
        """Return a digest of what workers get a copy of; ``None`` if that takes too long."""
        loader, digest = self._loader, _Digest(self._now, _MOST_S)
        try:
            pickle.dump((loader.dataset, loader.collate_fn, loader.worker_init_fn), digest)
        except Exception as error:  # what objects of the user raise
            log_caught(_log, error, "workers do not stay between epochs")
            self._may_stay = False
            return None
        return digest.value


class _Digest:
    """A file that keeps only a digest of what is written to it."""

    def __init__(self, now: Callable[[], float], most_s: float) -> None:
        self._now, self._end_s = now, now() + most_s
        self._hash = hashlib.blake2b()

    def write(self, data: Any) -> int:
        if self._now() > self._end_s:
            raise TimeoutError("comparing the data set takes too long")
        self._hash.update(data)
        return len(memoryview(data))

    @property
    def value(self) -> bytes:
        return self._hash.digest()
