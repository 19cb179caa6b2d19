"""Keep the copies to a device that a thread has made, until the profile of its loader takes them.

A copy on CUDA ends some time after the call that started it, and nothing here waits for that.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from pipeprof.log import log_caught
from pipeprof.measure.device import Events, cuda_events

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeviceCopy:
    """The copies that one call of `pipeprof.to_device` made."""

    seconds: float
    """Seconds of the copies alone, measured by the device on CUDA, elsewhere by the host."""
    called_s: float
    """When it was called, on the monotonic clock of the run."""
    bytes: int | None
    """Logical bytes; ``None`` where a tensor was sparse or nested, or an object hid its tensors."""
    copies: int
    """Tensors copied, without those that an object hid."""
    pageable_copies: int | None
    """Copies from memory that was not pinned; ``None`` where it is unknown."""
    blocking: bool


class CopyNotes:
    """Notes copies to a device, and times those on CUDA by events. It raises nothing: after an
    error it has stopped for good."""

    def __init__(self, events: Events | None = None, most: int = 1024) -> None:
        """Use the ``events`` of CUDA unless others are given; keep the last ``most`` copies."""
        self._events = events
        self._kept: deque[tuple[Any, Any, DeviceCopy]] = deque()
        self._most = most
        self._stopped = False
        self.active = True
        """Whether copies are noted."""

    def mark(self, stream: Any) -> Any | None:
        """Record an event at the end of ``stream``; ``None`` when there can be none."""
        if stream is None or self._stopped or not self.active:
            return None
        try:
            self._events = self._events or cuda_events()
            return self._events.record(stream) if self._events else None
        except Exception as error:
            self._stop(error)
            return None

    def add(self, start: Any | None, end: Any | None, copy: DeviceCopy) -> None:
        """Keep a copy that lies between two events, or that the host's clock has timed."""
        if not self._stopped:
            self._kept.append((start, end, copy))
            if len(self._kept) > self._most:
                self._pop()

    def take(self) -> list[DeviceCopy]:
        """Return the copies that have ended and were not taken yet, in order. It never blocks."""
        taken: list[DeviceCopy] = []
        try:
            while self._kept and (copy := self._oldest_if_ended()) is not None:
                self._pop()
                taken.append(copy)
        except Exception as error:
            self._stop(error)
        return taken

    def _oldest_if_ended(self) -> DeviceCopy | None:
        start, end, copy = self._kept[0]
        if self._events is None or end is None:
            return copy
        if not self._events.done(end):
            return None
        return replace(copy, seconds=self._events.elapsed_s(start, end))

    def _pop(self) -> None:
        start, end, _ = self._kept.popleft()
        for event in (start, end):
            if self._events is not None and event is not None:
                self._events.give_back(event)

    def _stop(self, error: Exception) -> None:
        log_caught(_log, error, "copies to the device are no longer timed")
        self._stopped = True
        self._kept.clear()


class _ThisThread(threading.local):
    def __init__(self) -> None:
        self.copies = CopyNotes()


this_thread = _ThisThread()
"""``this_thread.copies`` are those that this thread has made."""
