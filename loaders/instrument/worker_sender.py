"""Write the record of each batch in a worker, at the moment when the worker sends the batch.

torch puts a finished batch into a `multiprocessing.Queue`. The queue's feeder thread pickles it,
which copies its tensors into shared memory, and writes the bytes into a pipe. The sender also
notes when a batch is pickled.

While batches are not recorded, no hook is in place, and a worker runs as without pipeprof. Main
wakes it by the first task that is to be recorded, see `pipeprof.loaders.instrument.wake_up`.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from math import nan
from multiprocessing import queues
from threading import Lock
from typing import Any, ClassVar

from pipeprof.loaders.instrument.hooks import Hooks
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import RingWriter, note_sent

_log = logging.getLogger(__name__)

_PICKLER = "_ForkingPickler"
"""The name by which the feeder threads of all queues look up their pickler."""


class WorkerSender:
    """Sends the records of one worker. It takes few steps, as all code that runs once a batch."""

    __slots__ = ("__weakref__", "_active", "_clock", "_cpu_before_s", "_lock", "_pickler_hook",
                 "_put", "_put_hook", "_record", "_set_active", "_window", "_workers",
                 "_writer", "add_record", "places")  # fmt: skip

    def __init__(self, writer: RingWriter, workers: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._writer, self._workers = writer, workers
        self._window = writer.window
        self._record: deque[Sequence[float]] = deque(maxlen=1)
        self.add_record = self._record.append
        """Takes the record of the batch that is sent next, with the fields of `REPORTED_FIELDS`."""
        self.places: dict[int, int] = {}
        """The `id` of each batch that is put and not yet pickled → where to note the moment."""
        self._cpu_before_s = nan
        """CPU time of the feeder thread when it had pickled the batch before."""
        self._put_hook, self._pickler_hook = Hooks(), Hooks()
        self._set_active: Callable[[bool], object] = bool
        self._active = False
        self._lock = Lock()
        """Held to put the pickler's hook in place, or to remove it."""

    def begin_epoch(self, worker: int, set_active: Callable[[bool], object]) -> None:
        """Begin an epoch of ``worker``, and switch the hooks of its fetcher by ``set_active`` from
        now on."""
        self._writer.begin_epoch(worker)
        self._record.clear()
        self._set_active = set_active
        first, end = self._window
        on = first <= worker < end  # the number of its first task
        self._active = not on
        self.switch(on)

    def attach(self, queue: Any, module: Any = queues) -> None:
        """Prepare the hooks of ``queue``, whose feeder thread finds its pickler in ``module``."""
        put, pickler = getattr(queue, "put", None), getattr(module, _PICKLER, None)
        if put is None or pickler is None:
            return
        self._put = put
        self._put_hook.add(queue, "put", self.put)
        timed = _timed(pickler)
        timed.sender = weakref.ref(self)
        self._pickler_hook.add(module, _PICKLER, timed)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Stand in for the queue's ``put``, and write the record of the batch first."""
        task = obj[0]
        if type(task) is int:  # anything else announces that the worker begins an epoch
            if self._record:
                place = self._writer.write(task, self._record.pop())
                if place is not None:
                    self.places[id(obj)] = place
            # the next task is mostly `task + workers`, and nearer once other workers have none left
            window = self._window
            if not (window[0] <= task + self._workers and task + 1 < window[1]):
                self.switch(False)
        self._put(obj, block, timeout)

    def switch(self, on: bool) -> None:
        """Put all hooks in place, or remove them."""
        if on is self._active:
            return
        self._active = on
        # a fetcher may be of an unknown version
        with suppress_and_log(_log, "which batches to record next is not known"):
            self._set_active(on)
        self._put_hook.set(on)
        if on:
            with self._lock:
                self._cpu_before_s = nan
                self._pickler_hook.set(True)

    def note_pickled(self, place: int | None) -> None:
        """Note that the feeder thread has pickled the batch whose moment belongs to ``place``. The
        last batch of a window is pickled after the other hooks were removed."""
        if place is None:
            self._cpu_before_s = nan  # reading the CPU clock costs as much as all the rest here
        else:
            cpu_s = self._clock.cpu_now()
            note_sent(self._writer.memory, place, self._clock.now(), cpu_s - self._cpu_before_s)
            self._cpu_before_s = cpu_s
        if not self._active:
            with self._lock:
                if not self._active and not self.places:
                    self._pickler_hook.set(False)


@cache
def _timed(pickler: Any) -> Any:
    """Return a ``pickler`` that calls `WorkerSender.note_pickled` of its ``sender`` after each
    object. The sender is not kept alive, as this class is made once in a process."""

    class TimedPickler(pickler):  # type: ignore[misc]
        sender: ClassVar[Callable[[], WorkerSender | None]]

        @classmethod
        def dumps(cls, obj: Any, *args: Any) -> Any:
            sender = cls.sender()
            if sender is None:
                return pickler.dumps(obj, *args)
            place = sender.places.pop(id(obj), None)
            pickled = pickler.dumps(obj, *args)
            try:  # an error would end the feeder thread's work on a batch
                sender.note_pickled(place)
            except Exception as error:
                log_caught(_log, error, "when a batch was pickled is not known")
            return pickled

    return TimedPickler


with suppress_and_log(_log, "each worker makes its pickler"):
    _timed(getattr(queues, _PICKLER))  # it lies ready in main for workers that are forked
