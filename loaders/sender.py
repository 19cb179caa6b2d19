"""In a worker: number its batches, and note when each is serialised.

torch puts a finished batch into a `multiprocessing.Queue`; the queue's feeder thread pickles it,
which copies its tensors into shared memory, and writes the bytes into a pipe.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from pipeprof.measure.ring import Ring, record_number


class Sender:
    """Writes each record under the number of its batch within this worker and epoch."""

    def __init__(self, worker: int, ring: Ring) -> None:
        self._worker, self._ring = worker, ring
        self._generation = self._count = 0
        self._made: int | None = None
        """Place in the ring of the batch that is made, but not yet put into the queue."""
        self._put: deque[int | None] = deque()
        """Of what is in the queue; ``None`` for what is no batch, as an acknowledgement."""

    def begin_epoch(self) -> None:
        self._generation += 1
        self._count = 0

    def tell(self, told: Sequence[float]) -> None:
        """Of the batch just made."""
        number = record_number(self._generation, self._count)
        self._count += 1
        try:
            self._made = self._ring.write(self._worker, number, told)
        except Exception:  # the record is lost, the batch is not
            self._made = None

    def watch(self, queue: Any) -> None:
        """Note from now on when each batch that is put into ``queue`` is serialised. Does nothing
        to what is no `multiprocessing.Queue`; to be called before anything is put into it."""
        put, pipe = getattr(queue, "put", None), getattr(queue, "_wlock", None)
        if put is None or pipe is None:
            return

        def noted_put(item: Any, *arguments: Any, **options: Any) -> None:
            self._put.append(self._made)
            self._made = None
            put(item, *arguments, **options)

        places, mark, acquire = self._put, self._ring.mark_sent, pipe.acquire

        def timed_acquire() -> Any:
            try:  # an error would end the feeder thread's work on a batch
                place = places.popleft() if places else None
                if place is not None:
                    mark(place, perf_counter())
            except Exception:
                pass
            return acquire()

        # the feeder thread asks for the pipe when it has pickled, and may wait for other workers
        queue.put, queue._wlock = (
            noted_put,
            SimpleNamespace(acquire=timed_acquire, release=pipe.release),
        )
