"""Emulate an accelerator by a calibrated sleep in the consumer, where no real one is available.

It is part of the product, and reports say *emulated* wherever its figures appear.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from pipeprof.errors import UsageError
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.units import format_duration


class EmulatedAccelerator:
    """Blocks its caller for ``step_s`` seconds a batch, without using a core."""

    def __init__(self, step_s: float, clock: Clock = SYSTEM_CLOCK, name: str | None = None) -> None:
        if not step_s >= 0:
            raise UsageError(f"a step of {step_s} s is impossible; give 0 or more")
        self.step_s = step_s
        self.name = name
        """The accelerator whose step is emulated, if it is a known one."""
        self._clock = clock
        self._overshoot_s = self._calibrate() if step_s else 0.0

    @property
    def label(self) -> str:
        prefix = f"{self.name}, " if self.name else ""
        return f"emulated: {prefix}a sleep of {format_duration(self.step_s)} a step"

    def step(self, batch: Any) -> None:
        """Consume one batch."""
        sleep_s = self.step_s - self._overshoot_s
        if sleep_s > 0:
            self._clock.sleep(sleep_s)

    def _calibrate(self) -> float:
        """Return the seconds by which a sleep takes longer than requested on this machine."""
        requested_s = min(self.step_s, 0.002)
        overshoots_s = []
        for _ in range(15):
            start = self._clock.now()
            self._clock.sleep(requested_s)
            overshoots_s.append(self._clock.now() - start - requested_s)
        return max(0.0, median(overshoots_s))
