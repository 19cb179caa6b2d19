"""Measure how long an accelerator has no work, by events in its queue, without waiting for it.

The host's `wait` is how long the training loop waited for a batch. A loop that queues work ahead of
the device may wait long while the device is busy, which only the device can tell. So two events are
recorded for each batch: one when the loop asks for it, behind all queued work, and one when it is
delivered::

    ask ──── no batch yet: starved ──── deliver ──── the step: busy ──── ask

The device reaches an event when the work before it is done *and* the host has recorded it. The
device is starved from when it runs out of work, or from the request if that is later, until the
delivery. Where queued work lasts beyond the delivery, the two events follow each other at once. The
1 to 5 µs that two events cost the device then count as starved. Time after the delivery is busy,
with slow launches and copies to the device: no loader can shorten it.

An event tells only about its own stream. The figures are incomplete for a loop that changes its
current stream between the two events, or works mainly on another. So they are where a thread draws
batches ahead of the loop.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import deque
from typing import Any, Literal, NamedTuple, Protocol

from pipeprof.log import log_caught

_log = logging.getLogger(__name__)

_MOST_POOLED = 1024
"""At most so many events of a device are kept for reuse."""


class Events(Protocol):
    """Events in a device's queue of work. No method waits for the device."""

    def record(self, stream: Any = None) -> Any | None:
        """Record an event at the end of ``stream``, by default the current one; ``None`` when there
        cannot be one now."""
        ...

    def done(self, last: Any, *others: Any) -> bool:
        """Return whether the device has reached all these events, of which ``last`` was recorded
        last."""
        ...

    def elapsed_s(self, start: Any, end: Any) -> float:
        """Return the seconds between two done events; NaN when they are on different devices."""
        ...

    def give_back(self, event: Any) -> None:
        """Allow the event to be reused."""
        ...


class _Recorded(NamedTuple):
    event: Any
    device: int
    stream: int
    """Its handle, which is unique on a device."""


class CudaEvents:
    """The events of ``torch.cuda``.

    An event belongs to the device on which it was first recorded, so each device has its own pool.
    While the current stream is captured into a graph, nothing is recorded and nothing counts as
    done: the event would become part of the graph, and a query would invalidate the capture.
    """

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._pools: dict[int, list[Any]] = {}

    def record(self, stream: Any = None) -> _Recorded | None:
        if self._cuda.is_current_stream_capturing():
            return None
        stream = self._cuda.current_stream() if stream is None else stream
        pool = self._pools.get(stream.device_index)
        event = pool.pop() if pool else self._cuda.Event(enable_timing=True)
        event.record(stream)
        return _Recorded(event, stream.device_index, stream.cuda_stream)

    def done(self, last: _Recorded, *others: _Recorded) -> bool:
        # one stream reaches its events in order, and to query one takes a microsecond
        return (
            not self._cuda.is_current_stream_capturing()
            and bool(last.event.query())
            and all(each[1:] == last[1:] or each.event.query() for each in others)
        )

    def elapsed_s(self, start: _Recorded, end: _Recorded) -> float:
        if start.device != end.device:
            return math.nan
        return float(start.event.elapsed_time(end.event)) / 1000

    def give_back(self, event: _Recorded) -> None:
        pool = self._pools.setdefault(event.device, [])
        if len(pool) < _MOST_POOLED:
            pool.append(event.event)


def cuda_events() -> CudaEvents | None:
    """Return the events of CUDA, or ``None`` unless this process uses CUDA; it takes about 0.2 µs.
    CUDA is never initialised here, which takes seconds and memory, and prevents forking workers."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return CudaEvents(cuda) if cuda is not None and cuda.is_initialized() else None


def cuda_name() -> str | None:
    """Return the name of the current CUDA device, or ``None`` unless this process uses CUDA."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return str(cuda.get_device_name()) if cuda is not None and cuda.is_initialized() else None


class DeviceStep(NamedTuple):
    """What the device did around one batch."""

    batch: int
    """The number that `DeviceClock.ask` and `deliver` were called with."""
    starved_s: float
    busy_s: float


class _Mark(NamedTuple):
    kind: Literal["ask", "deliver", "leave"]
    batch: int
    event: Any | None = None


_STEP = ("ask", "deliver", "ask")


class DeviceClock:
    """Records events where batches are asked for and delivered, and evaluates them later.

    A step ends where the next batch is asked for. It raises nothing: after an error it has stopped
    for good.
    """

    def __init__(self, events: Events, most_pending: int = 256) -> None:
        """Keep the last ``most_pending`` batches whose events the device has not reached."""
        self._events = events
        self._marks: deque[_Mark] = deque()
        self._most_marks = 2 * most_pending + 1
        self.reason: str | None = None
        """Why it has stopped; ``None`` while it runs."""

    def ask(self, batch: int) -> None:
        """Note that ``batch`` is asked for, and that the step before has ended."""
        self._record("ask", batch)

    def deliver(self, batch: int) -> None:
        """Note that ``batch`` is handed to the loop."""
        self._record("deliver", batch)

    def leave(self) -> None:
        """Note that the loop was left: the open step has no end, and is not measured."""
        if self._marks and self._marks[-1].kind != "leave":
            self._marks.append(_Mark("leave", -1))

    def harvest(self) -> list[DeviceStep]:
        """Return the batches that the device has finished, in order. It never blocks; with nothing
        ready it queries one event."""
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
        """Move the oldest batch to ``ready``, or drop its mark; return whether it was done."""
        asked, delivered, end = self._marks[0], self._marks[1], self._marks[2]
        whole = (asked.kind, delivered.kind, end.kind) == _STEP and asked.batch == delivered.batch
        events = (end.event, delivered.event, asked.event)
        if not whole or None in events:
            self._pop()
            return True
        if not self._events.done(*events):
            return False
        starved_s = self._events.elapsed_s(asked.event, delivered.event)
        busy_s = self._events.elapsed_s(delivered.event, end.event)
        if math.isnan(starved_s + busy_s):
            self._pop()
            return True
        self._pop()
        self._pop()
        # on different streams, a later event may be reached first
        ready.append(DeviceStep(delivered.batch, max(0.0, starved_s), max(0.0, busy_s)))
        return True

    def _pop(self) -> _Mark:
        mark = self._marks.popleft()
        if mark.event is not None:
            self._events.give_back(mark.event)
        return mark

    def _stop(self, error: Exception) -> None:
        log_caught(_log, error, "the device's steps are no longer timed")
        self.reason = f"{type(error).__name__}: {error}".splitlines()[0]
        self._marks.clear()
