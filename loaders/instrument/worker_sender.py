"""In a worker, where it hands its batches over: write the record of each, note when it is
serialised, and take the hooks off where batches are not watched.

torch puts a finished batch into a `multiprocessing.Queue`; the queue's feeder thread pickles it,
which copies its tensors into shared memory, and writes the bytes into a pipe.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import nan
from types import SimpleNamespace
from typing import Any

from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import RingWriter, note_sent

_log = logging.getLogger(__name__)


class WorkerSender:
    """One worker's. Written for few steps, as all that runs once a batch."""

    __slots__ = ("_clock", "_kept", "_on", "_put", "_waiting", "_watch", "_worker", "_workers",
                 "_writer", "tell")  # fmt: skip

    def __init__(
        self, writer: RingWriter, worker: int, workers: int, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._clock = clock
        self._writer, self._worker, self._workers = writer, worker, workers
        self._kept: deque[Sequence[float]] = deque(maxlen=1)
        self.tell = self._kept.append
        """Takes what is known of the batch that is handed over next, as in `TOLD`."""
        self._waiting: deque[int | None] = deque()
        """Of what is put and not yet serialised: where to note the moment."""
        self._watch: Callable[[bool], object] | None = None
        self._on = True

    def begin_epoch(self) -> None:
        """Before `watch` is given the hooks of it."""
        self._writer.begin_epoch()
        self._on = True

    def watch(self, watch: Callable[[bool], object]) -> None:
        """``watch`` puts the hooks on and takes them off; they are on."""
        self._watch = watch
        self._look(self._worker - self._workers)  # it is sent its own number first

    def attach(self, queue: Any) -> None:
        """Before anything is put into ``queue``. To what is no `multiprocessing.Queue` nothing is
        done: the records are lost then."""
        put, pipe = getattr(queue, "put", None), getattr(queue, "_wlock", None)
        if put is None or pipe is None:
            return
        self._put = put
        acquire, memory, waiting = pipe.acquire, self._writer.memory, self._waiting
        now, cpu_now, before_s = self._clock.now, self._clock.cpu_now, 0.0

        def timed_acquire() -> Any:
            nonlocal before_s
            try:  # an error would end the feeder thread's work on a batch
                place = waiting.popleft()
                if place is None:
                    before_s = nan  # to ask for it takes as long as all else here
                else:
                    cpu_s = cpu_now()
                    note_sent(memory, place, now(), cpu_s - before_s)
                    before_s = cpu_s
            except Exception as error:
                log_caught(_log, error, "when a batch was serialised is not known")
            return acquire()

        # the feeder thread asks for the pipe when it has pickled, and may wait for other workers
        queue.put = self.put
        queue._wlock = SimpleNamespace(acquire=timed_acquire, release=pipe.release)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        place, task = None, obj[0]
        if type(task) is int:  # else it says that the worker begins an epoch
            if self._kept:
                place = self._writer.write(task, self._kept.pop())
            self._look(task)
        self._waiting.append(place)
        self._put(obj, block, timeout)

    def _look(self, task: int) -> None:
        """Whether what comes after ``task`` is to be watched: mostly ``task + workers``, but sooner
        once other workers have nothing left."""
        try:
            first, end = self._writer.heard()
            on = first <= task + self._workers and task + 1 < end
            if on is not self._on and self._watch is not None:
                self._on = on
                self._watch(on)
        except Exception as error:  # no memory, or a fetcher that we do not know
            log_caught(_log, error, "which batches to watch next was not heard")
