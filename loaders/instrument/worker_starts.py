"""Measure how workers are started that get a pickled copy of the data set: by spawn or forkserver.

`multiprocessing` pickles a process by `reduction.dump` into a buffer, whose length is the size of
the copy, and writes that to a pipe. A pipe holds 64 KiB, so the write of a larger copy ends only
when the new worker has read it. Nothing is pickled for the measurement.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from multiprocessing import process, reduction
from typing import Any

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.monkeypatch import Method, wrap_in
from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import PickledStarts

_log = logging.getLogger(__name__)


def workers_are_threads(loader: Any) -> bool:
    """Return whether the workers of ``loader`` are threads of this process, as MONAI's may be. What
    is hooked for a worker would then stay hooked here for good."""
    kind = safe_getattr(safe_getattr(loader, "multiprocessing_context"), "Process")
    return isinstance(kind, type) and not issubclass(kind, process.BaseProcess)


class _ThisThread(threading.local):
    measured: WorkerStarts | None = None


_this_thread = _ThisThread()


class WorkerStarts:
    """Sums up all starts of the workers of one loader."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.now = clock.now
        self._starts = 0
        self._start_s = self._pickle_s = 0.0
        self._copies = self._copy_bytes = 0

    def snapshot(self) -> PickledStarts | None:
        """Return the figures so far; ``None`` where nothing was pickled."""
        if not self._copies:
            return None
        return PickledStarts(self._starts, self._copy_bytes, self._pickle_s, self._start_s)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the workers that this thread starts in the body of a ``with``."""
        module: Any = reduction
        wrap_in(module, "dump", _observed, key="starts")
        outer, _this_thread.measured = _this_thread.measured, self
        copies, begin_s = self._copies, self.now()
        try:
            yield
        finally:
            _this_thread.measured = outer
            if self._copies > copies:
                self._starts += 1
                self._start_s += self.now() - begin_s

    def add_copy(self, size: int, seconds: float) -> None:
        """Note the bytes of a copy, and the time to pickle it."""
        self._copies += 1
        self._copy_bytes = max(self._copy_bytes, size)
        self._pickle_s += seconds


def _observed(original: Method) -> Method:
    """Return `reduction.dump` such that it notes the processes that are pickled in `measured`."""

    @wraps(original)
    def dump(obj: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
        starts = _this_thread.measured
        if starts is None or not isinstance(obj, process.BaseProcess):
            return original(obj, file, *args, **kwargs)
        begin_s = starts.now()
        result = original(obj, file, *args, **kwargs)
        seconds = starts.now() - begin_s
        try:
            starts.add_copy(file.tell(), seconds)
        except (AttributeError, OSError) as error:  # it is a pipe, as on Windows
            log_caught(_log, error, "the size of a pickled data set is not known")
        return result

    return dump
