"""Measure what the accelerator does with the batches of one pass, where there is one.

Nothing here waits for the device, so its times are known only some batches later.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import NamedTuple

from pipeprof.measure.copies import DeviceCopy, this_thread
from pipeprof.measure.device import DeviceClock, cuda_events, cuda_name
from pipeprof.measure.nvml import DeviceSample, Nvml
from pipeprof.measure.recorder import Recorder

_REMEMBERED = 512
"""Number of last batches to which a copy can still be charged."""
_COLLECT_EVERY, _COLLECT_EVERY_S = 64, 0.25
"""Times that are known are passed on after so many batches, or so many seconds: together they cost
less, as their code is in the caches then. Fewer than `DeviceClock` keeps pending."""


class DeviceWaits(NamedTuple):
    """Waits for batches around which the accelerator was observed, summed. In seconds."""

    known_s: float = 0.0
    hidden_s: float = 0.0
    """The part that passed while the accelerator was busy."""

    def plus(self, other: DeviceWaits) -> DeviceWaits:
        return DeviceWaits(self.known_s + other.known_s, self.hidden_s + other.hidden_s)

    def since(self, before: DeviceWaits) -> DeviceWaits:
        return DeviceWaits(self.known_s - before.known_s, self.hidden_s - before.hidden_s)

    @property
    def stalled_share(self) -> float:
        """The share, 0 to 1, in which the accelerator was idle; 1 where none was observed."""
        return 1 - self.hidden_s / self.known_s if self.known_s > 0 else 1.0


NO_WAITS = DeviceWaits()


class DeviceTotals:
    """Copies and use of the device, summed over all passes of a loader."""

    def __init__(self) -> None:
        self.pageable_copies = self.blocking_copies = 0
        self.name: str | None = None
        """The name of the accelerator; ``None`` while none is in use."""
        self.waits = NO_WAITS
        self.memory_bytes: int | None = None
        """Most device memory in use at any sample; ``None`` without samples."""
        self._utilisation_sum = 0.0
        self._samples = 0

    def add_copy(self, copy: DeviceCopy) -> None:
        self.pageable_copies += copy.pageable_copies or 0
        self.blocking_copies += copy.copies if copy.blocking else 0

    def add_sample(self, sample: DeviceSample) -> None:
        self.memory_bytes = max(sample.memory_bytes, self.memory_bytes or 0)
        if sample.utilisation is not None:
            self._utilisation_sum += sample.utilisation
            self._samples += 1

    @property
    def utilisation(self) -> float | None:
        """Mean utilisation, 0 to 1; ``None`` without samples."""
        return self._utilisation_sum / self._samples if self._samples else None


class DeviceMonitor:
    """Measures idle, busy and copy times around each batch, and passes them to the recorder."""

    def __init__(self, recorder: Recorder, totals: DeviceTotals) -> None:
        events = cuda_events()
        self._recorder, self._totals = recorder, totals
        self._clock = DeviceClock(events) if events is not None else None
        self._nvml = Nvml() if events is not None else None
        self._delivered: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)
        self._waits: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self._uncollected, self._collect_s = 0, 0.0
        totals.name = totals.name or cuda_name()

    @staticmethod
    def has_work() -> bool:
        """Return whether this process uses CUDA or `pipeprof.to_device`; takes about 0.3 µs."""
        return "pipeprof.measure.h2d" in sys.modules or cuda_events() is not None

    @property
    def stopped(self) -> str:
        """Why the device is no longer measured; empty while it is."""
        reason = self._clock.reason if self._clock is not None else None
        return f"the accelerator was no longer measured: {reason}" if reason else ""

    def ask(self, number: int) -> None:
        """Note that the batch with this `Pass.number` is requested now."""
        if self._clock is not None:
            self._clock.ask(number)
        self._uncollected += 1
        if self._uncollected >= _COLLECT_EVERY or self._recorder.now() >= self._collect_s:
            self.collect()

    def deliver(self, number: int, asked_s: float, delivered_s: float) -> None:
        """Note that the batch with this `Pass.number` is delivered now."""
        if self._clock is not None:
            self._clock.deliver(number)
        self._delivered.append((delivered_s, number))
        self._waits.append((number, delivered_s - asked_s))

    def switch(self, on: bool, number: int) -> None:
        """Begin to observe, or end it, before the batch with this `Pass.number` is requested."""
        if not on and self._clock is not None:
            self._clock.ask(number)  # the end of the last step
            self._clock.leave()
        this_thread.copies.active = on

    def leave(self) -> None:
        """Note that the pass has ended."""
        if self._clock is not None:
            self._clock.leave()
        this_thread.copies.active = True
        self.collect()

    def collect(self) -> None:
        """Pass on all times that are known by now."""
        self._uncollected, self._collect_s = 0, self._recorder.now() + _COLLECT_EVERY_S
        if self._clock is not None:
            for batch, starved_s, busy_s in self._clock.harvest():
                self._recorder.note_device(batch, starved_s, busy_s)
                self._add_wait(self._waited_s(batch), starved_s)
        for copy in this_thread.copies.take():
            self._totals.add_copy(copy)
            self._recorder.note_copy(self._batch_at(copy.called_s), copy.seconds, copy.bytes or 0)
        sample = self._nvml.sample() if self._nvml is not None else None
        if sample is not None:
            self._totals.add_sample(sample)

    def _add_wait(self, wait_s: float, starved_s: float) -> None:
        wait = DeviceWaits(wait_s, max(0.0, wait_s - starved_s))
        self._totals.waits = self._totals.waits.plus(wait)

    def _waited_s(self, batch: int) -> float:
        """Return how long the loop waited for ``batch``, and forget it and those before."""
        while self._waits:
            number, wait_s = self._waits.popleft()
            if number == batch:
                return wait_s
        return 0.0

    def _batch_at(self, moment_s: float) -> int:
        """Return the number of the last batch delivered before then; -1 if it is too long ago."""
        for delivered_s, number in reversed(self._delivered):
            if delivered_s <= moment_s:
                return number
        return -1
