"""Times a stretch of consecutive batches that one setting fetches."""

from __future__ import annotations

from pipeprof.loaders.tune.search import MeasuredStretch
from pipeprof.model import TunedSetting

LEAST_BATCHES, LEAST_S = 20, 0.5
"""A stretch is at least so long."""


class StretchClock:
    """Batches of one setting under the clock; those that fill its buffers are left out."""

    def __init__(self, setting: TunedSetting) -> None:
        self.setting = setting
        self._skip = setting.outstanding + 1
        self._last_s = 0.0
        self.batches, self.seconds, self._waited_s, self.lost_s = 0, 0.0, 0.0, 0.0

    def batch(self, asked_s: float, delivered_s: float) -> None:
        if self._skip:
            self._skip -= 1
        else:
            self.batches += 1
            self.seconds += delivered_s - self._last_s
            self._waited_s += delivered_s - asked_s
        self._last_s = delivered_s

    def interrupt(self, setting: TunedSetting) -> None:
        """An epoch begins: buffers fill again."""
        self._skip = setting.outstanding + 1

    @property
    def long_enough(self) -> bool:
        return self.batches >= LEAST_BATCHES and self.seconds >= LEAST_S

    def stretch(self) -> MeasuredStretch:
        return MeasuredStretch(
            self.setting, self.batches, self.seconds, self._waited_s, self.lost_s
        )
