"""In a worker: note when each batch is serialised.

torch puts a finished batch into a `multiprocessing.Queue`; the queue's feeder thread pickles it,
which copies its tensors into shared memory, and writes the bytes into a pipe.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from pipeprof.measure.ring import RingWriter, note_moment


def note_sending(queue: Any, writer: RingWriter) -> None:
    """Of what is put into ``queue`` from now on, which ``writer`` has told of. Does nothing to what
    is no `multiprocessing.Queue`; to be called before anything is put into it."""
    put, pipe = getattr(queue, "put", None), getattr(queue, "_wlock", None)
    if put is None or pipe is None:
        return
    acquire, memory = pipe.acquire, writer.memory
    waiting: deque[int | None] = deque()  # places; `None` for what is no batch: an acknowledgement

    def noted_put(obj: Any, block: bool = True, timeout: float | None = None) -> None:
        waiting.append(writer.place)
        writer.place = None
        put(obj, block, timeout)

    def timed_acquire() -> Any:
        try:  # an error would end the feeder thread's work on a batch
            place = waiting.popleft()
            if place is not None:
                note_moment(memory, place, perf_counter())
        except Exception:
            pass
        return acquire()

    # the feeder thread asks for the pipe when it has pickled, and may wait for other workers
    queue.put = noted_put
    queue._wlock = SimpleNamespace(acquire=timed_acquire, release=pipe.release)
