"""An emulated accelerator: a calibrated sleep in the consumer, where no real one is at hand.

It is part of the product, and named as what it is wherever its figures appear.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from pipeprof.errors import UsageError
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.units import format_duration


class EmulatedAccelerator:
    """Keeps the caller busy for ``step_s`` seconds a batch, without using a core."""

    def __init__(self, step_s: float, clock: Clock = SYSTEM_CLOCK, name: str | None = None) -> None:
        if not step_s >= 0:
            raise UsageError(f"a step of {step_s} s is impossible; give 0 or more")
        self.step_s = step_s
        self.name = name
        """Of the accelerator whose step this is, if any."""
        self._clock = clock
        self._overshoot_s = self._calibrate() if step_s else 0.0

    @property
    def label(self) -> str:
        of = f"{self.name}, " if self.name else ""
        return f"emulated: {of}a sleep of {format_duration(self.step_s)} a step"

    def step(self, batch: Any) -> None:
        """Consume one batch."""
        rest = self.step_s - self._overshoot_s
        if rest > 0:
            self._clock.sleep(rest)

    def _calibrate(self) -> float:
        """How much longer than asked a sleep takes here, so that it can be taken off."""
        asked = min(self.step_s, 0.002)
        extra = []
        for _ in range(15):
            start = self._clock.now()
            self._clock.sleep(asked)
            extra.append(self._clock.now() - start - asked)
        return max(0.0, median(extra))
