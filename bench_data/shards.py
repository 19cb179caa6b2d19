"""Write the shards of a data set, each as one object, in this process or in several."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection, get_context, parent_process
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from typing import Any

from pipeprof import formats
from pipeprof.bench_data import rows
from pipeprof.errors import OutputError
from pipeprof.manifest import Manifest
from pipeprof.storage.write import open_object

ROW_GROUP_BYTES = 8 * 2**20
"""Approximate size of a row group in RAM."""
BATCH_BYTES = 2**20
"""Approximate size of the rows encoded at once in other formats; small, for steady progress."""

Advance = Callable[[int], None]
"""Receives the number of rows that were encoded since the last call."""


@dataclass(frozen=True)
class GeneratedShard:
    """One object to write: rows ``start`` to ``stop`` of a data set."""

    url: str
    data_set: Manifest
    """The data set's manifest, without files."""
    start: int
    stop: int
    needed_bytes: int
    """Approximate bytes of this and all later shards, for the message when a disk fills."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def write_shard(shard: GeneratedShard, advance: Advance) -> int:
    """Write a shard, and return its bytes. Raises `OutputError`."""
    data_set = shard.data_set
    kind = rows.get(data_set.kind)
    written_as = formats.get(data_set.format)
    encoder = written_as.encoder(kind.schema, data_set.compression)
    batch_bytes = ROW_GROUP_BYTES if written_as.row_groups else BATCH_BYTES
    size = max(1, batch_bytes // kind.mean_row_bytes)
    with open_object(shard.url, shard.options, shard.needed_bytes) as sink:
        for batch in rows.batches(kind, data_set.seed, shard.start, shard.stop, size):
            sink.write(encoder.write(batch))
            advance(batch.num_rows)
        sink.write(encoder.finish())
    return sink.size


def write_shards(shards: Sequence[GeneratedShard], jobs: int, advance: Advance) -> list[int]:
    """Write all shards, and return their bytes.

    The first error, or Ctrl-C, stops all of them; complete shards stay.
    """
    if jobs <= 1 or len(shards) <= 1:
        return [write_shard(shard, advance) for shard in shards]
    context = get_context("spawn")
    written, stop = context.Value("q", 0), context.Event()
    pool = ProcessPoolExecutor(min(jobs, len(shards)), context, _init_worker, (written, stop))
    try:
        # Ctrl-C interrupts only this process, which then lets the workers clean up
        with _ctrl_c_deferred():
            futures = [pool.submit(_write_in_worker, shard) for shard in shards]
        _report_progress(futures, written, advance)
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise OutputError(
            "A process that wrote shards was killed, perhaps because memory ran out. Complete "
            "shards stay: run the same command again with fewer --jobs to continue."
        ) from None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _report_progress(
    futures: Sequence[Future[int]], written: Synchronized[int], advance: Advance
) -> None:
    """Report the rows that workers have written until all are done, or one of them fails."""
    reported = 0
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
        # read without the lock, which a killed worker may have held
        now = written.get_obj().value
        advance(now - reported)
        reported = now
        for future in finished:
            future.result()


@contextmanager
def _ctrl_c_deferred() -> Iterator[None]:
    """Deliver Ctrl-C after the body; processes that are started in the body never receive it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What follows runs in a worker process.


class _Stopped(Exception):
    """Raised when the parent process no longer wants the shard."""


_advance: Advance


def _init_worker(written: Synchronized[int], stop: Event) -> None:
    global _advance
    _advance = partial(_count, written, stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _write_in_worker(shard: GeneratedShard) -> int:
    return write_shard(shard, _advance)


def _count(written: Synchronized[int], stop: Event, batch_rows: int) -> None:
    """Add ``batch_rows`` to ``written``. Raises `_Stopped` once ``stop`` is set."""
    with written:
        written.value += batch_rows
    if stop.is_set():
        raise _Stopped


def _end_with_parent() -> None:
    """Exit when the parent has ended; a pool's workers would otherwise wait for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
