"""The copies to a device that a thread has made, until the profile of its loader takes them.

A copy on CUDA is over some time after the call that made it; nobody waits for that.
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
    """What one call of `pipeprof.to_device` moved."""

    seconds: float
    """Of the copies alone: on CUDA the device's time, elsewhere the host's."""
    called_s: float
    """When it was called, on the monotonic clock of the run."""
    bytes: int | None
    """Logical. ``None``: unknown, as a tensor was sparse or nested, or an object hid what it
    holds."""
    copies: int
    """Tensors, as far as they could be seen."""
    pageable_copies: int | None
    """Of these, from memory that was not pinned; ``None``: unknown."""
    blocking: bool


class CopyNotes:
    """No error leaves it: after one it has stopped for good."""

    def __init__(self, events: Events | None = None, most: int = 1024) -> None:
        """``events``: those of CUDA unless given. ``most``: copies kept; beyond, the oldest are
        given up."""
        self._events = events
        self._kept: deque[tuple[Any, Any, DeviceCopy]] = deque()
        self._most = most
        self._stopped = False

    def mark(self, stream: Any) -> Any | None:
        """An event at the end of ``stream``; ``None`` when there can be none."""
        if stream is None or self._stopped:
            return None
        try:
            self._events = self._events or cuda_events()
            return self._events.record(stream) if self._events else None
        except Exception as error:
            self._stop(error)
            return None

    def add(self, start: Any | None, end: Any | None, copy: DeviceCopy) -> None:
        """``copy`` lies between two events, or was timed by the host's clock."""
        if not self._stopped:
            self._kept.append((start, end, copy))
            if len(self._kept) > self._most:
                self._pop()

    def take(self) -> list[DeviceCopy]:
        """Those that are over and were not taken yet, in order. Never blocks."""
        taken: list[DeviceCopy] = []
        try:
            while self._kept and (copy := self._oldest_if_over()) is not None:
                self._pop()
                taken.append(copy)
        except Exception as error:
            self._stop(error)
        return taken

    def _oldest_if_over(self) -> DeviceCopy | None:
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
        log_caught(_log, error, "copies to the device are timed no more")
        self._stopped = True
        self._kept.clear()


class _Here(threading.local):
    def __init__(self) -> None:
        self.notes = CopyNotes()


here = _Here()
"""``here.notes`` are those of this thread."""
