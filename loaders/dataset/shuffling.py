"""Put rows in a random order: those of a block, those in a buffer, or all of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeprof.formats.base import Split
from pipeprof.loaders.dataset.planning import ObjectSplit
from pipeprof.measure.stage_timer import Timed
from pipeprof.model import Stage
from pipeprof.storage import ObjectInfo

_BINS = 16
"""Parts of a buffer. It hands out one at a time, as a batch is made of many rows."""


@dataclass(frozen=True)
class Draw:
    """The rows of one batch that lie in one split."""

    split: ObjectSplit
    rows: NDArray[np.int64]
    """Numbers of the rows in the split."""
    places: NDArray[np.int64]
    """The place of each in the batch."""


def rows_generator(item: ObjectInfo, split: Split, seed: int, epoch: int) -> np.random.Generator:
    """Return what orders the rows of a split, whatever folder its object is in."""
    name = crc32(item.url.rpartition("/")[2].encode())
    return np.random.default_rng([seed, epoch, name, split.start])


def permuted(rows: pa.RecordBatch, random: np.random.Generator) -> pa.RecordBatch:
    """Return ``rows`` in a random order."""
    return rows.take(pa.array(random.permutation(rows.num_rows)))


def buffered(
    tables: Iterator[pa.RecordBatch], buffer_rows: int, random: np.random.Generator
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``tables``, mixed with those that are at most some buffers away.

    Each row is put into a random one of `_BINS` bins. While these hold more than ``buffer_rows``
    rows, one of them is emptied, and its rows are yielded in a random order. So each row is copied
    twice, however large the buffer is. Taking single rows from a buffer mixes a little more evenly,
    and costs a copy of the buffer or a call for each row.

    Args:
        tables: Rows in the order in which they are read.
        buffer_rows: How many rows are kept at least, until the end of ``tables``. A decoded table
            is added whole.
        random: What decides the order.
    """
    bins: list[list[pa.RecordBatch]] = [[] for _ in range(_BINS)]
    count = 0
    for table in tables:
        with Timed(Stage.COLLATE):
            _scatter(table, bins, random)
        count += table.num_rows
        while count > buffer_rows:
            filled = [number for number, parts in enumerate(bins) if parts]
            emptied = bins[filled[random.integers(len(filled))]]
            yield (rows := _joined(emptied, random))
            count -= rows.num_rows
    for number in random.permutation(_BINS):
        if bins[number]:
            yield _joined(bins[number], random)


def _scatter(
    table: pa.RecordBatch, bins: Sequence[list[pa.RecordBatch]], random: np.random.Generator
) -> None:
    """Add each row of ``table`` to a random bin."""
    chosen = random.integers(len(bins), size=table.num_rows)
    order = np.argsort(chosen, kind="stable")
    ends = np.searchsorted(chosen[order], np.arange(len(bins) + 1))
    for parts, (start, end) in zip(bins, pairwise(ends), strict=True):
        if end > start:  # a copy, since a slice would keep all of the table in memory
            parts.append(table.take(pa.array(order[start:end])))


def _joined(parts: list[pa.RecordBatch], random: np.random.Generator) -> pa.RecordBatch:
    """Empty a bin, and return its rows in a random order."""
    with Timed(Stage.COLLATE):
        rows = pa.concat_batches(parts)
        parts.clear()
        return permuted(rows, random)


def batch_draws(
    splits: Sequence[ObjectSplit],
    batch_size: int,
    seed: int,
    epoch: int,
    place: tuple[int, int, int, int],
) -> Iterator[list[Draw]]:
    """Yield what each batch of a worker takes from each split, in an order random over all rows.

    The order needs 8 bytes of memory for each row of the data set, in each worker.

    Args:
        splits: All splits of the data set, with their numbers of rows.
        batch_size: Rows of a batch.
        seed: Decides the order together with ``epoch``.
        epoch: See ``seed``.
        place: Rank, number of ranks, worker, and number of workers.
    """
    ends = np.cumsum([split.rows or 0 for _, split in splits], dtype=np.int64)
    order = np.random.default_rng([seed, epoch]).permutation(int(ends[-1]) if len(ends) else 0)
    rank, world_size, worker, workers = place
    share = order[worker * world_size + rank :: workers * world_size]
    for start in range(0, len(share), batch_size):
        yield _draws(splits, ends, share[start : start + batch_size])


def _draws(
    splits: Sequence[ObjectSplit], ends: NDArray[np.int64], batch: NDArray[np.int64]
) -> list[Draw]:
    holders = np.searchsorted(ends, batch, side="right")
    draws = []
    for holder in np.unique(holders):
        places = np.flatnonzero(holders == holder)
        first = ends[holder - 1] if holder else 0
        draws.append(Draw(splits[holder], batch[places] - first, places))
    return draws


def gathered(tables: Sequence[pa.RecordBatch], draws: Sequence[Draw]) -> pa.RecordBatch:
    """Return the rows of a batch in its order; ``tables`` are those that each draw has taken."""
    with Timed(Stage.COLLATE):
        places = np.concatenate([draw.places for draw in draws])
        return pa.concat_batches(tables).take(pa.array(np.argsort(places)))
