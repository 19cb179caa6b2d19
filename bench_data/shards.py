"""Shards: each one object, written on its own, by this process or by several."""

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
"""A Parquet row group in RAM, about."""
BATCH_BYTES = 2**20
"""Rows encoded at once in other formats: few, for steady progress and little memory."""

Advance = Callable[[int], None]
"""Hears how many more rows have been encoded."""


@dataclass(frozen=True)
class GeneratedShard:
    """Rows ``start`` to ``stop`` of a data set, as one object."""

    url: str
    data_set: Manifest
    """Without its files."""
    start: int
    stop: int
    needs: int
    """About the bytes that this and all later shards take, for the message when a disk fills."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


def write_shard(shard: GeneratedShard, advance: Advance) -> int:
    """Bytes written. Raises `OutputError`."""
    whole = shard.data_set
    kind = rows.get(whole.kind)
    encoder = formats.get(whole.format).encoder(kind.schema, whole.compression)
    batch_bytes = ROW_GROUP_BYTES if whole.format == "parquet" else BATCH_BYTES
    size = max(1, batch_bytes // kind.mean_row_bytes)
    with open_object(shard.url, shard.options, shard.needs) as sink:
        for batch in rows.batches(kind, whole.seed, shard.start, shard.stop, size):
            sink.write(encoder.write(batch))
            advance(batch.num_rows)
        sink.write(encoder.finish())
    return sink.size


def write_shards(shards: Sequence[GeneratedShard], jobs: int, advance: Advance) -> list[int]:
    """Bytes of each shard. The first error, or Ctrl-C, ends all: whole shards stay."""
    if jobs <= 1 or len(shards) <= 1:
        return [write_shard(shard, advance) for shard in shards]
    context = get_context("spawn")
    written, stop = context.Value("q", 0), context.Event()
    pool = ProcessPoolExecutor(min(jobs, len(shards)), context, _begin, (written, stop))
    try:
        # what Ctrl-C ends is this process: it then lets the others clean up after themselves
        with _ctrl_c_deferred():
            futures = [pool.submit(_write_in_worker, shard) for shard in shards]
        _follow(futures, written, advance)
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise OutputError(
            "A process that was writing shards was killed, perhaps for want of memory. Whole "
            "shards stay: run the same command to go on, with fewer --jobs."
        ) from None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _follow(futures: Sequence[Future[int]], written: Synchronized[int], advance: Advance) -> None:
    """Pass on what the workers wrote until all is done, or one of them fails."""
    reported = 0
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
        # without its lock, which a worker that was killed may have taken with it
        now = written.get_obj().value
        advance(now - reported)
        reported = now
        for future in finished:
            future.result()


@contextmanager
def _ctrl_c_deferred() -> Iterator[None]:
    """Processes started in the body never get Ctrl-C; this one gets it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker process.


class _Stopped(Exception):
    """The process that asked for the shard no longer wants it."""


_advance: Advance


def _begin(written: Synchronized[int], stop: Event) -> None:
    global _advance
    _advance = partial(_count, written, stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _write_in_worker(shard: GeneratedShard) -> int:
    return write_shard(shard, _advance)


def _count(written: Synchronized[int], stop: Event, batch_rows: int) -> None:
    with written:
        written.value += batch_rows
    if stop.is_set():
        raise _Stopped


def _end_with_parent() -> None:
    """A pool's workers would outlive a parent that was killed, and wait for ever."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
