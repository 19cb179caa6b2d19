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


class TunedEpoch:
    """One epoch over a tuned loader."""

    def __init__(self, tuner: Tuner, carried: CarriedEpoch) -> None:
        self._tuner, self._now = tuner, tuner.clock.now
        self._carried: CarriedEpoch | None = carried

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
                if not self._tuner.failed(carried, error):
                    if not carried.current.lost_worker:
                        carried.skip()
                    raise
                log_caught(_log, error, "a setting is not used further")
        self._tuner.delivered(carried, asked_s, self._now())
        return batch

    def _end(self) -> None:
        if self._carried is not None:
            self._carried = None
            self._tuner.end()

    @finalizer
    def __del__(self) -> None:
        if "_carried" in vars(self):
            self._end()
