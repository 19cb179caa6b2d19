"""Times a stretch of consecutive batches that one setting fetches."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from pipeprof.loaders.instrument.device_monitor import NO_WAITS, DeviceWaits
from pipeprof.loaders.tune.search import MeasuredStretch
from pipeprof.model import TunedSetting

LEAST_BATCHES, LEAST_S = 20, 0.5
"""A stretch is at least so long."""
_PARTS = 8
"""A stretch is cut into so many parts, whose rates show how much the rate of all may be wrong."""


BatchTimes = tuple[float, float, float]
"""When a batch was asked for, when it was delivered, and the seconds that the loop waited for other
tuned loaders in the step before it."""


@dataclass(frozen=True)
class Delivered:
    """A batch that the training loop received."""

    setting: TunedSetting
    asked_s: float
    delivered_s: float
    after_pause: bool = False
    """Whether the step before it had a pause."""
    waits: DeviceWaits = NO_WAITS
    """Those of the run so far, as an accelerator shows them."""
    others_s: float = 0.0
    """What the step before it waited for other tuned loaders."""


class StretchClock:
    """Batches of one setting under the clock. Those of switching to it are counted apart: while its
    workers start, and while they fill their buffers. Those that an epoch or a pause begins with
    are left out."""

    def __init__(self, setting: TunedSetting, least_s: float = LEAST_S) -> None:
        self.setting = setting
        self._least_s = least_s
        self._filling = setting.outstanding + 1
        """Batches until the buffers of the setting are full."""
        self._resting = 1
        """Batches until those are over whose time says nothing."""
        self._since_pause = 0
        self.last_s = 0.0
        """When the last batch was delivered."""
        self._cycles_s: list[float] = []
        """Without the waits for other loaders."""
        self._waits = self._last_waits = NO_WAITS
        self.seconds, self._waited_s, self._others_s = 0.0, 0.0, 0.0
        self.switching, self.switching_s = 0, 0.0
        """Batches of switching, and their seconds."""

    @property
    def batches(self) -> int:
        return len(self._cycles_s)

    def batch(self, batch: Delivered) -> None:
        self._since_pause += 1
        if batch.after_pause:
            # half of the batches count also where pauses follow each other closely
            rested = min(batch.setting.outstanding, self._since_pause // 2)
            self._resting, self._since_pause = max(self._resting, rested + 1), 0
        if batch.setting != self.setting:  # also within a stretch, where an epoch begins
            self._filling = self.setting.outstanding + 1
        cycle_s = batch.delivered_s - self.last_s
        if self._resting:
            self._resting -= 1
        elif self._filling:
            self.switching += 1
            self.switching_s += cycle_s
        else:
            others_s = min(batch.others_s, batch.asked_s - self.last_s)
            self._cycles_s.append(cycle_s - others_s)
            self._others_s += others_s
            self.seconds += cycle_s
            self._waited_s += batch.delivered_s - batch.asked_s
            self._waits = self._waits.plus(batch.waits.since(self._last_waits))
        if self._filling and batch.setting == self.setting:
            self._filling -= 1
        self.last_s, self._last_waits = batch.delivered_s, batch.waits

    def interrupt(self) -> None:
        """An epoch begins: buffers fill again."""
        self._resting = self.setting.outstanding + 1

    @property
    def long_enough(self) -> bool:
        return self.batches >= LEAST_BATCHES and self.seconds >= self._least_s

    def stretch(self) -> MeasuredStretch:
        known = self._waits if self._waits.known_s > 0 else self._last_waits
        waited_s, others_s = (
            each_s * known.stalled_share for each_s in (self._waited_s, self._others_s)
        )
        return MeasuredStretch(
            self.setting, self.batches, self.seconds, waited_s,
            self.switching, self.switching_s, rate_error=self.rate_error(), others_s=others_s,
        )  # fmt: skip

    def rate_error(self) -> float:
        """Return the standard error of the mean cycle, as a share of it, by the method of batch
        means: successive batches depend on each other, parts of the stretch hardly."""
        if self.batches < 2 * _PARTS or not self.seconds:
            return 0.0
        length = self.batches // _PARTS
        parts = np.reshape(self._cycles_s[: length * _PARTS], (_PARTS, length)).mean(axis=1)
        return float(np.std(parts, ddof=1) / sqrt(_PARTS) / np.mean(parts))
