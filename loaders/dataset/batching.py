"""Cut and join tables of decoded rows to batches of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import torch

from pipeprof.loaders.dataset.arrow_arrays import Array, Numbers, RaggedArray, to_arrays
from pipeprof.loaders.dataset.order import Order
from pipeprof.loaders.tensors import Batch, Ragged
from pipeprof.measure.stage_timer import Timed
from pipeprof.model import Stage

Transform: TypeAlias = "Callable[[Batch], Any]"
RowRange = tuple[Mapping[str, Array], int, int]
"""Columns by name, and the first row and the row after the last."""


@dataclass(frozen=True)
class BatchOptions:
    """How rows are ordered, shared out and joined to batches; see `open_dataset`."""

    batch_size: int
    order: Order
    seed: int
    drop_last: bool
    repeat: bool
    transform: Transform | None
    null_masks: bool
    rank: int
    world_size: int


def batches_of(
    tables: Iterator[pa.RecordBatch], rows: int, drop_last: bool, null_masks: bool = False
) -> Iterator[Batch]:
    """Yield batches of ``rows`` rows from ``tables``; the last may be shorter, or is dropped. A
    batch from within one table is a view of it, without a copy."""
    pending: list[RowRange] = []
    count = 0
    for table in tables:
        with Timed(Stage.COLLATE):
            arrays = to_arrays(table, null_masks)
        at, end = 0, table.num_rows
        while count + end - at >= rows:
            stop = at + rows - count
            pending.append((arrays, at, stop))
            yield _join(pending)
            pending, count, at = [], 0, stop
        if at < end:
            pending.append((arrays, at, end))
            count += end - at
    if pending and not drop_last:
        yield _join(pending)


def _join(ranges: Sequence[RowRange]) -> Batch:
    with Timed(Stage.COLLATE):
        if len(ranges) == 1:
            [(arrays, start, stop)] = ranges
        else:
            arrays = {name: _join_column(name, ranges) for name in ranges[0][0]}
            start, stop = 0, sum(stop - start for _, start, stop in ranges)
        return make_batch(arrays, start, stop)


def _join_column(name: str, ranges: Sequence[RowRange]) -> Array:
    parts, lengths = [], []
    for arrays, start, stop in ranges:
        array = arrays[name]
        if isinstance(array, pa.Array):
            objects: list[Any] = [arrays[name] for arrays, _, _ in ranges]
            slices = zip(objects, ranges, strict=True)
            return pa.concat_arrays([each[start:stop] for each, (_, start, stop) in slices])
        if isinstance(array, RaggedArray):
            offsets = array.offsets[start : stop + 1]
            parts.append(array.values[offsets[0] : offsets[-1]])
            lengths.append(np.diff(offsets))
        else:
            parts.append(array[start:stop])
    values = _concatenate(parts)
    if not lengths:
        return values
    return RaggedArray(values, np.concatenate([[0], np.cumsum(np.concatenate(lengths))]))


def _concatenate(parts: Sequence[Numbers]) -> Numbers:
    """Concatenate into memory of Arrow's pool, which reuses what is freed. Fresh memory would cost
    more than the copy into it."""
    size = sum(part.nbytes for part in parts)
    if not size:
        return np.concatenate(parts)
    memory = np.frombuffer(pa.allocate_buffer(size), parts[0].dtype)
    joined: Numbers = np.concatenate(parts, out=memory.reshape(-1, *parts[0].shape[1:]))
    return joined


def make_batch(arrays: Mapping[str, Array], start: int, stop: int) -> Batch:
    """Return rows ``start`` to ``stop`` as views of the arrays' memory. Each tensor has its own
    storage. A slice of a tensor of the whole column would be faster to make, but torch sends the
    whole storage of a tensor between processes."""
    # one expression, because function calls dominate for batches of many columns
    return Batch(
        {
            name: torch.from_numpy(array[start:stop])
            if isinstance(array, np.ndarray)
            else _other(array, start, stop)
            for name, array in arrays.items()
        }
    )


def _other(array: RaggedArray | pa.Array, start: int, stop: int) -> Ragged | pa.Array:
    if isinstance(array, RaggedArray):
        return _ragged(array, start, stop)
    # a copy, since a slice would travel to another process with all rows around it
    return array.take(pa.array(range(start, stop), pa.int64()))


def _ragged(array: RaggedArray, start: int, stop: int) -> Ragged:
    offsets = array.offsets[start : stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    values = torch.from_numpy(array.values[first:last])
    return Ragged(values, torch.from_numpy(np.subtract(offsets, first, dtype=np.int64)))
