"""Decoded rows, in tables of any length → batches of the length asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import torch

from pipeprof.loaders.dataset.arrow_arrays import Array, Numbers, RaggedArray, to_arrays
from pipeprof.loaders.tensors import Batch, Ragged
from pipeprof.measure.stage_timer import Timed
from pipeprof.model import Stage

Piece = tuple[Mapping[str, Array], int, int]
"""Columns, and which of their rows: from, to."""


def batches_of(
    tables: Iterator[pa.RecordBatch], rows: int, drop_last: bool, null_masks: bool = False
) -> Iterator[Batch]:
    """Cut and join ``tables`` to ``rows`` rows each; the last may be shorter, or is dropped.

    A batch from within one table is a view of it, and costs no copy. Raises `SchemaMismatch`.
    """
    waiting: list[Piece] = []
    count = 0
    for table in tables:
        with Timed(Stage.COLLATE):
            arrays = to_arrays(table, null_masks)
        at, end = 0, table.num_rows
        while count + end - at >= rows:
            stop = at + rows - count
            waiting.append((arrays, at, stop))
            yield _made(waiting)
            waiting, count, at = [], 0, stop
        if at < end:
            waiting.append((arrays, at, end))
            count += end - at
    if waiting and not drop_last:
        yield _made(waiting)


def _made(pieces: Sequence[Piece]) -> Batch:
    with Timed(Stage.COLLATE):
        if len(pieces) == 1:
            [(arrays, start, stop)] = pieces
        else:
            arrays = {name: _joined(name, pieces) for name in pieces[0][0]}
            start, stop = 0, sum(stop - start for _, start, stop in pieces)
        return _batch(arrays, start, stop)


def _joined(name: str, pieces: Sequence[Piece]) -> Array:
    parts, lengths = [], []
    for arrays, start, stop in pieces:
        array = arrays[name]
        if isinstance(array, RaggedArray):
            offsets = array.offsets[start : stop + 1]
            parts.append(array.values[offsets[0] : offsets[-1]])
            lengths.append(np.diff(offsets))
        else:
            parts.append(array[start:stop])
    values = _together(parts)
    if not lengths:
        return values
    return RaggedArray(values, np.concatenate([[0], np.cumsum(np.concatenate(lengths))]))


def _together(parts: Sequence[Numbers]) -> Numbers:
    """End to end, in memory of Arrow's pool, which keeps what is freed: fresh memory costs more
    than the copy into it."""
    size = sum(part.nbytes for part in parts)
    if not size:
        return np.concatenate(parts)
    memory = np.frombuffer(pa.allocate_buffer(size), parts[0].dtype)
    joined: Numbers = np.concatenate(parts, out=memory.reshape(-1, *parts[0].shape[1:]))
    return joined


def to_tensors(table: pa.RecordBatch, null_masks: bool = False) -> Batch:
    """The columns of ``table`` as tensors, which share its memory where they can (see
    `pipeprof.loaders.dataset.arrow_arrays`). Raises `SchemaMismatch`."""
    return _batch(to_arrays(table, null_masks), 0, table.num_rows)


def _batch(arrays: Mapping[str, Array], start: int, stop: int) -> Batch:
    """Rows ``start`` to ``stop``, in the arrays' memory.

    Each tensor has a storage of its own: a slice of one of the whole column would be quicker, but
    torch sends the whole storage of whatever a worker hands over.
    """
    # in one place, as a batch of many columns is mostly calls of functions
    return Batch(
        {
            name: _ragged(array, start, stop)
            if isinstance(array, RaggedArray)
            else torch.from_numpy(array[start:stop])
            for name, array in arrays.items()
        }
    )


def _ragged(array: RaggedArray, start: int, stop: int) -> Ragged:
    offsets = array.offsets[start : stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    values = torch.from_numpy(array.values[first:last])
    return Ragged(values, torch.from_numpy(np.subtract(offsets, first, dtype=np.int64)))
