"""Main's notebook of a run: one row per delivered batch."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields

from pipeprof.measure.clock import Clock, SystemClock
from pipeprof.measure.ring import WorkerRecord
from pipeprof.model import BatchLog

KEPT_BATCHES = 100_000
"""The last so many batches are kept, about 50 MB."""


@dataclass(frozen=True)
class Origin:
    """Where a batch came from, as far as it could be seen."""

    worker: int | None = None
    """-1: made in the main process; ``None``: not known."""
    arrived_s: float | None = None
    """Unpickled in main."""
    record: WorkerRecord | None = None


class Recorder:
    """Told when a batch is asked for, delivered, and done with."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._rows: deque[list[float | int | None]] = deque(maxlen=KEPT_BATCHES)
        self._asked_s: float | None = None
        self._open = False
        self._count = 0
        self._epoch = -1
        self._epoch_began_s = 0.0
        self.first_batch_s: list[float] = []
        """Per epoch: from asking for the iterator to the first batch."""
        self.lost_records = 0

    def begin_epoch(self) -> None:
        """The iterator is asked for."""
        self.leave()
        self._epoch += 1
        self._epoch_began_s = self._clock.now()

    def ask(self) -> None:
        """The next batch is asked for; the step on the last one has ended."""
        self._asked_s = self._clock.now()
        self._end_step(self._asked_s)

    def deliver(self, samples: int, origin: Origin, expects_record: bool) -> None:
        """The batch asked for is handed to the training loop."""
        if self._asked_s is None:
            raise AssertionError("a batch was delivered that nobody asked for")
        now = self._clock.now()
        if len(self.first_batch_s) == self._epoch:
            self.first_batch_s.append(now - self._epoch_began_s)
        self.lost_records += expects_record and origin.record is None
        self._rows.append(_row(self._count, self._epoch, samples, self._asked_s, now, origin))
        self._count += 1
        self._open = True

    def leave(self) -> None:
        """The loop has ended, or was left."""
        self._end_step(self._clock.now())

    def log(self) -> BatchLog:
        """All that was kept, as columns."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(fields(BatchLog))
        return BatchLog(*(tuple(column) for column in columns))

    def _end_step(self, now: float) -> None:
        if self._open:
            self._rows[-1][_DONE] = now
            self._open = False


_DONE = [field.name for field in fields(BatchLog)].index("done_s")


def _row(
    index: int, epoch: int, samples: int, asked_s: float, now: float, origin: Origin
) -> list[float | int | None]:
    """In the order of `BatchLog`'s fields. Until the step ends, it is taken to last 0 s."""
    made = origin.record
    worker = -2 if origin.worker is None else origin.worker
    start: list[float | int | None] = [
        index, epoch, worker, samples, asked_s, now, now, origin.arrived_s
    ]  # fmt: skip
    if made is None:
        return [*start, None, None, None, None, None, None, None, 0, 0]
    return [
        *start,
        made.fetch_start_s,
        made.fetch_end_s,
        made.read_s,
        made.decode_s,
        made.transform_s,
        made.collate_s,
        made.cpu_s,
        made.bytes,
        made.requests,
    ]
