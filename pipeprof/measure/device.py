"""Starvation as the accelerator sees it: by events in its queue of work, never by waiting for it.

The host's `wait` says how long the training loop waited for a batch. A loop that queues work and
runs ahead of the device may wait long while the device is busy all the time; only the device
knows. Two events a batch tell: one recorded when the loop asks for a batch, behind all work of
the step so far, and one when the batch is delivered::

    ask ──── no batch yet: starved ──── deliver ──── the step: busy ──── ask

An event is reached when the work before it is done *and* the host has recorded it. So the first
stretch is the time between the device running dry, or the request if that came later, and the
delivery. When work is queued beyond the delivery, both events are reached back to back, and the
stretch is the few µs (1 to 5) that two events cost the device: that floor is not taken off. Time
after the delivery, such as slow launches and copies to the device, is busy: no loader can help it.

Where this can be wrong: events of different streams of one device can be compared, but each tells
only of its own stream; so a loop that changes its current stream between the two, or works mainly
on another, is seen in part. The same holds for a thread that draws batches ahead of the loop.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import deque
from typing import Any, Literal, NamedTuple, Protocol

from pipeprof.log import log_caught

_log = logging.getLogger(__name__)

_MOST_IDLE = 1024
"""Events kept for reuse, per device."""


class Events(Protocol):
    """Marks in a device's queue of work. Nothing here ever waits for the device."""

    def record(self, stream: Any = None) -> Any | None:
        """A mark at the end of ``stream``, by default the current one; ``None`` when there
        cannot be one now."""
        ...

    def done(self, event: Any) -> bool:
        """Whether the device has reached it."""
        ...

    def elapsed_s(self, start: Any, end: Any) -> float:
        """Between two that are done; NaN when they are on different devices."""
        ...

    def give_back(self, event: Any) -> None:
        """It may be used again."""
        ...


class _Recorded(NamedTuple):
    event: Any
    device: int


class CudaEvents:
    """Of ``torch.cuda``. An event belongs to the device on which it was first recorded, so each
    device has a pool of its own.

    While the current stream is captured into a graph, nothing is recorded and nothing counts as
    done: the event would become part of the graph, and asking for one would void the capture.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._idle: dict[int, list[Any]] = {}

    def record(self, stream: Any = None) -> _Recorded | None:
        if self._cuda.is_current_stream_capturing():
            return None
        stream = self._cuda.current_stream() if stream is None else stream
        idle = self._idle.get(stream.device_index)
        event = idle.pop() if idle else self._cuda.Event(enable_timing=True)
        event.record(stream)
        return _Recorded(event, stream.device_index)

    def done(self, event: _Recorded) -> bool:
        return not self._cuda.is_current_stream_capturing() and bool(event.event.query())

    def elapsed_s(self, start: _Recorded, end: _Recorded) -> float:
        if start.device != end.device:
            return math.nan
        return float(start.event.elapsed_time(end.event)) / 1000

    def give_back(self, event: _Recorded) -> None:
        idle = self._idle.setdefault(event.device, [])
        if len(idle) < _MOST_IDLE:
            idle.append(event.event)


def cuda_events() -> CudaEvents | None:
    """``None`` unless this process uses CUDA already; about 0.2 µs. CUDA is never initialised
    here, as that takes seconds and memory, and a process that does it can fork no workers."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return CudaEvents(cuda) if cuda is not None and cuda.is_initialized() else None


class DeviceStep(NamedTuple):
    """One batch as the device saw it."""

    batch: int
    """Its number, as it was told."""
    starved_s: float
    busy_s: float


class _Mark(NamedTuple):
    kind: Literal["ask", "deliver", "leave"]
    batch: int
    event: Any | None = None


_STEP = ("ask", "deliver", "ask")


class DeviceClock:
    """Told when a batch is asked for and delivered; says later what the device did meanwhile.

    Each step ends where the next batch is asked for. No error leaves it: after one it has stopped
    for good, and ``reason`` says why.
    """

    def __init__(self, events: Events, most_pending: int = 256) -> None:
        """``most_pending``: batches whose events the device has not reached; beyond, the oldest
        are given up."""
        self._events = events
        self._marks: deque[_Mark] = deque()
        self._most_marks = 2 * most_pending + 1
        self.reason: str | None = None
        """Why it has stopped."""

    def ask(self, batch: int) -> None:
        """``batch`` is asked for, and the step before has ended."""
        self._record("ask", batch)

    def deliver(self, batch: int) -> None:
        """``batch`` is handed to the loop."""
        self._record("deliver", batch)

    def leave(self) -> None:
        """The loop was left: a step that is still open has no end, and is not measured."""
        if self._marks and self._marks[-1].kind != "leave":
            self._marks.append(_Mark("leave", -1))

    def harvest(self) -> list[DeviceStep]:
        """The batches known by now, in order. Never blocks; with nothing ready it asks the
        device for one event."""
        ready: list[DeviceStep] = []
        try:
            while len(self._marks) >= 3 and self._take_oldest(ready):
                pass
        except Exception as error:
            self._stop(error)
        return ready

    def _record(self, kind: Literal["ask", "deliver"], batch: int) -> None:
        if self.reason is not None:
            return
        try:
            self._marks.append(_Mark(kind, batch, self._events.record()))
            while len(self._marks) > self._most_marks:
                self._pop()
        except Exception as error:
            self._stop(error)

    def _take_oldest(self, ready: list[DeviceStep]) -> bool:
        """Whether the oldest mark could be dealt with."""
        asked, delivered, end = self._marks[0], self._marks[1], self._marks[2]
        whole = (asked.kind, delivered.kind, end.kind) == _STEP and asked.batch == delivered.batch
        events = (end.event, delivered.event, asked.event)
        if not whole or None in events:
            self._pop()
            return True
        # on one stream the last is reached last, and says it for all
        if not all(self._events.done(event) for event in events):
            return False
        starved_s = self._events.elapsed_s(asked.event, delivered.event)
        busy_s = self._events.elapsed_s(delivered.event, end.event)
        if math.isnan(starved_s + busy_s):
            self._pop()
            return True
        self._pop()
        self._pop()
        # between streams, what was recorded later may be reached first
        ready.append(DeviceStep(delivered.batch, max(0.0, starved_s), max(0.0, busy_s)))
        return True

    def _pop(self) -> _Mark:
        mark = self._marks.popleft()
        if mark.event is not None:
            self._events.give_back(mark.event)
        return mark

    def _stop(self, error: Exception) -> None:
        log_caught(_log, error, "the device's steps are timed no more")
        self.reason = f"{type(error).__name__}: {error}".splitlines()[0]
        self._marks.clear()
