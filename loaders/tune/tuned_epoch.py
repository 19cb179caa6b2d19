"""What the training loop iterates."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.loaders.tune.ranks import OneRank
from pipeprof.loaders.tune.stretch_clock import BatchTimes
from pipeprof.log import log_caught
from pipeprof.measure.finalizer import finalizer

if TYPE_CHECKING:
    from pipeprof.loaders.tune.tuner import Tuner

_log = logging.getLogger(__name__)

_LOOK_S, _LOOK_WITH_RANKS_S, _LOOK_AFTERWARDS_S = 0.1, 0.02, 1.0
"""Seconds between two looks at what was delivered: during a search, alone and with other ranks, and
after it. Training drives our code out of the caches, so that a look at many batches costs hardly
more than at one."""
_MOST_NOTES = 4096
"""Most batches between two looks."""


class _ThisThread(threading.local):
    waited_s = 0.0
    """Seconds that its loops waited for the batches of all tuned loaders."""


_this_thread = _ThisThread()


class TunedEpoch:
    """One epoch over a tuned loader."""

    def __init__(self, tuner: Tuner, carried: CarriedEpoch) -> None:
        self._tuner, self._now = tuner, tuner.clock.now
        self._carried: CarriedEpoch | None = carried
        self._times: list[BatchTimes] = []
        """Of the batches since the last look."""
        self._waited_s = _this_thread.waited_s
        """What the loop had waited for all tuned loaders when the last batch was delivered."""
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
        others_s = _this_thread.waited_s - self._waited_s
        while True:
            try:
                batch = next(carried)
                break
            except StopIteration:
                self._end(self._times)
                raise
            except Exception as error:
                if not self._tuner.failed(carried, error):
                    if not carried.current.lost_worker:
                        carried.skip()
                    raise
                self._times.clear()  # of a setting that is not used any more
                log_caught(_log, error, "a setting is not used further")
        delivered_s = self._now()
        self._waited_s = _this_thread.waited_s = _this_thread.waited_s + delivered_s - asked_s
        self._times.append((asked_s, delivered_s, others_s))
        if delivered_s >= self._next_look_s or len(self._times) >= _MOST_NOTES:
            self._look(carried)
        return batch

    def _look(self, carried: CarriedEpoch) -> None:
        """Let the tuner decide what comes next."""
        times, self._times = self._times, []
        self._tuner.delivered(carried, times)
        self._next_look_s = self._now() + self._pause_s(carried)

    def _pause_s(self, carried: CarriedEpoch) -> float:
        """Return in how many seconds to look again."""
        if carried.switching:
            return 0.0
        if not self._tuner.searches:
            return _LOOK_AFTERWARDS_S
        return _LOOK_S if isinstance(self._tuner.live.ranks, OneRank) else _LOOK_WITH_RANKS_S

    def _end(self, times: Sequence[BatchTimes] = ()) -> None:
        carried, self._carried = self._carried, None
        if carried is not None:
            self._tuner.end(carried, times)

    @finalizer
    def __del__(self) -> None:
        if "_carried" in vars(self):
            self._end()
