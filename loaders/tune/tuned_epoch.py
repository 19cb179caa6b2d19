"""What the training loop iterates."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.log import log_caught
from pipeprof.measure.finalizer import finalizer

if TYPE_CHECKING:
    from pipeprof.loaders.tune.tuner import Tuner

_log = logging.getLogger(__name__)


_LOOK_EVERY_S, _LOOK_AFTERWARDS_S = 0.1, 1.0
"""Seconds between two looks at what was delivered, while the search lasts and after it. Training
drives our code out of the caches, so that a look at many batches costs hardly more than at one."""
_MOST_NOTES = 4096
"""Most batches between two looks."""


class TunedEpoch:
    """One epoch over a tuned loader."""

    def __init__(self, tuner: Tuner, carried: CarriedEpoch) -> None:
        self._tuner, self._now = tuner, tuner.clock.now
        self._carried: CarriedEpoch | None = carried
        self._times: list[tuple[float, float]] = []
        """When batches were asked for and delivered, since the last look."""
        self._next_look_s = 0.0

    def __iter__(self) -> TunedEpoch:
        return self

    def __len__(self) -> int:
        return len(self._tuner.loader)

    def __next__(self) -> Any:
        carried = self._carried
        if carried is None:
            raise StopIteration
        asked_s = self._now()
        while True:
            try:
                batch = next(carried)
                break
            except StopIteration:
                self._end()
                raise
            except Exception as error:
                self._look(carried)
                if not self._tuner.failed(carried, error):
                    if not carried.current.lost_worker:
                        carried.skip()
                    raise
                log_caught(_log, error, "a setting is not used further")
        delivered_s = self._now()
        self._times.append((asked_s, delivered_s))
        if delivered_s >= self._next_look_s or len(self._times) >= _MOST_NOTES:
            self._look(carried)
        return batch

    def _look(self, carried: CarriedEpoch) -> None:
        """Let the tuner decide what comes next. During a switch it looks at each batch."""
        times, self._times = self._times, []
        self._tuner.delivered(carried, times)
        wait_s = _LOOK_EVERY_S if self._tuner.searches else _LOOK_AFTERWARDS_S
        self._next_look_s = 0.0 if carried.switching else self._now() + wait_s

    def _end(self) -> None:
        if self._carried is not None:
            self._look(self._carried)
            self._carried = None
            self._tuner.end()

    @finalizer
    def __del__(self) -> None:
        if "_carried" in vars(self):
            self._end()
