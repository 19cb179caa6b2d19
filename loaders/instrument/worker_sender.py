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

from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import RingWriter, note_sent

_log = logging.getLogger(__name__)


class WorkerSender:
    """Sends the records of one worker. It takes few steps, as all code that runs once a batch."""

    __slots__ = ("_active", "_clock", "_pending", "_put", "_record", "_set_active", "_worker",
                 "_workers", "_writer", "add_record")  # fmt: skip

    def __init__(
        self, writer: RingWriter, worker: int, workers: int, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._clock = clock
        self._writer, self._worker, self._workers = writer, worker, workers
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
        self._update_hooks(self._worker - self._workers)  # the first task is the worker's number

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
            self._update_hooks(task)
        self._pending.append(place)
        self._put(obj, block, timeout)

    def _update_hooks(self, task: int) -> None:
        """Switch the hooks on or off for the task after ``task``. That is mostly ``task +
        workers``, and a nearer one once other workers have none left."""
        try:
            first, end = self._writer.window()
            on = first <= task + self._workers and task + 1 < end
            if on is not self._active and self._set_active is not None:
                self._active = on
                self._set_active(on)
        except Exception as error:  # no shared memory, or a fetcher of an unknown version
            log_caught(_log, error, "which batches to record next is not known")
