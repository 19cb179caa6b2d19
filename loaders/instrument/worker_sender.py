"""Write the record of each batch in a worker, at the moment when the worker sends the batch.

torch puts a finished batch into a `multiprocessing.Queue`. The queue's feeder thread pickles it,
which copies its tensors into shared memory, and writes the bytes into a pipe. The sender also
notes when a batch is serialised, and removes the hooks while batches are not recorded.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import nan
from types import SimpleNamespace
from typing import Any

from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import RingWriter, note_sent

_log = logging.getLogger(__name__)


class WorkerSender:
    """Sends the records of one worker. It takes few steps, as all code that runs once a batch."""

    __slots__ = ("_active", "_clock", "_pending", "_put", "_record", "_set_active", "_window",
                 "_worker", "_workers", "_writer", "add_record")  # fmt: skip

    def __init__(
        self, writer: RingWriter, worker: int, workers: int, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._clock = clock
        self._writer, self._worker, self._workers = writer, worker, workers
        self._window = writer.window
        self._record: deque[Sequence[float]] = deque(maxlen=1)
        self.add_record = self._record.append
        """Takes the record of the batch that is sent next, with the fields of `REPORTED_FIELDS`."""
        self._pending: deque[int | None] = deque()
        """For each batch that is put and not yet serialised: where to note the moment."""
        self._set_active: Callable[[bool], object] | None = None
        self._active = True

    def begin_epoch(self) -> None:
        """Begin an epoch; `control_hooks` then receives the hooks of its fetcher."""
        self._writer.begin_epoch()
        self._active = True

    def control_hooks(self, set_active: Callable[[bool], object]) -> None:
        """Switch hooks by ``set_active`` from now on; they are active when this is called."""
        self._set_active = set_active
        first, end = self._window
        if not first <= self._worker < end:  # the number of its first task
            self._switch_hooks()

    def attach(self, queue: Any) -> None:
        """Hook ``queue`` before anything is put into it. Anything but a `multiprocessing.Queue` is
        left as it is, and the records are lost."""
        put, pipe = getattr(queue, "put", None), getattr(queue, "_wlock", None)
        if put is None or pipe is None:
            return
        self._put = put
        acquire, memory, pending = pipe.acquire, self._writer.memory, self._pending
        now, cpu_now, before_s = self._clock.now, self._clock.cpu_now, 0.0

        def timed_acquire() -> Any:
            nonlocal before_s
            try:  # an error would end the feeder thread's work on a batch
                place = pending.popleft()
                if place is None:
                    before_s = nan  # reading the CPU clock costs as much as all the rest here
                else:
                    cpu_s = cpu_now()
                    note_sent(memory, place, now(), cpu_s - before_s)
                    before_s = cpu_s
            except Exception as error:
                log_caught(_log, error, "when a batch was serialised is not known")
            return acquire()

        # the feeder thread acquires the pipe after pickling, and may wait for other workers
        queue.put = self.put
        queue._wlock = SimpleNamespace(acquire=timed_acquire, release=pipe.release)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Stand in for the queue's ``put``, and write the record of the batch first."""
        place, task = None, obj[0]
        if type(task) is int:  # anything else announces that the worker begins an epoch
            if self._record:
                place = self._writer.write(task, self._record.pop())
            # the next task is mostly `task + workers`, and nearer once other workers have none left
            window = self._window
            if (window[0] <= task + self._workers and task + 1 < window[1]) is not self._active:
                self._switch_hooks()
        self._pending.append(place)
        self._put(obj, block, timeout)

    def _switch_hooks(self) -> None:
        if self._set_active is not None:
            self._active = not self._active
            # a fetcher may be of an unknown version
            with suppress_and_log(_log, "which batches to record next is not known"):
                self._set_active(self._active)
