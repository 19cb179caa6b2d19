"""What our own hooks cost: measured here and now, times how often they ran."""

from __future__ import annotations

from time import perf_counter, thread_time

from pipeprof.measure.recorder import Origin, Recorder
from pipeprof.measure.ring import Ring, WorkerRecord, record_number
from pipeprof.measure.spans import Tally, record, tallied
from pipeprof.model import BatchLog, Overhead, Span, Stage

_ROUNDS = 300


def measure_overhead(log: BatchLog) -> Overhead:
    """The cost of a batch's hooks, of worker and main together, against the run's wall time.

    The worker's part is charged in full, though workers run beside the training loop: an upper
    bound.
    """
    if not log.index:
        return Overhead(None, None, "no batch was seen")
    per_batch_s = _cost_of_a_batch()
    wall_s = log.done_s[-1] - log.asked_s[0]
    share = per_batch_s * len(log.index) / wall_s if wall_s > 0 else None
    return Overhead(
        share,
        per_batch_s,
        f"the hooks of a batch, timed {_ROUNDS} times after the run, × batches / wall time",
    )


def _cost_of_a_batch() -> float:
    try:
        ring: Ring | None = Ring(1, 64)
    except OSError:
        ring = None
    recorder = Recorder()
    recorder.begin_epoch()
    start = perf_counter()
    for count in range(_ROUNDS):
        recorder.ask()
        recorder.deliver(1, Origin(0, start, _as_a_worker_does(ring, count)), True)
    return (perf_counter() - start) / _ROUNDS


def _as_a_worker_does(ring: Ring | None, count: int) -> WorkerRecord | None:
    """Two spans and one record, written and read back."""
    with tallied(Tally()) as tally:
        cpu, start = thread_time(), perf_counter()
        record(Span(Stage.READ, start, start))
        record(Span(Stage.DECODE, start, perf_counter()))
    read_s = tally.seconds[Stage.READ]
    made = WorkerRecord(start, perf_counter(), read_s, 0.0, 0.0, 0.0, thread_time() - cpu, 0, 0)
    if ring is None:
        return made
    ring.write(0, record_number(1, count), made)
    return ring.read(0, record_number(1, count))
