"""Decode a block of `tf.train.Example` records into columns: by the scan, or else by protobuf."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import MOST_BYTES, Octets, Places, binary_array, gathered, unaligned
from pipeprof.formats.tfrecord import example
from pipeprof.formats.tfrecord.framing import Records
from pipeprof.formats.tfrecord.scan import (
    BYTES,
    EMPTY,
    FLOAT,
    INT,
    Cells,
    Refused,
    require,
    scan,
)
from pipeprof.formats.tfrecord.varint import PAD, varints, words_of
from pipeprof.formats.types import convert, is_list

_FEWEST_ROWS = 16
"""The fewest records for the scan: a step of it costs the same for one record as for many."""


def infer(records: Records) -> dict[str, pa.DataType]:
    """Return and raise what `example.infer` does, but faster where each feature has one value."""
    try:
        return _infer_scanned(records)
    except (Refused, SchemaMismatch):
        return example.infer(records)


def _infer_scanned(records: Records) -> dict[str, pa.DataType]:
    """Infer the types by the scan. Raises `Refused`, also where a record has a name that the first
    one has not."""
    types = example.infer(records[:1])
    cells, others = scan(records, list(types))
    if others or any(map(is_list, types.values())):
        raise Refused
    _batch(records.data, cells, pa.schema(types.items()), 0)  # each column is of one kind
    return types


def decode(records: Records, schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Decode records into columns. ``first`` is the number of the first one in its object. Raises
    `CorruptData`, `SchemaMismatch`."""
    if len(records) >= _FEWEST_ROWS:
        try:
            return decode_scanned(records, schema, first)
        except (Refused, SchemaMismatch):  # protobuf finds what is wrong, and where first
            pass
    return example.decode(records, schema, first)


def decode_scanned(records: Records, schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Decode records by the scan alone, as `decode`. Raises `Refused`, `SchemaMismatch`."""
    cells, _ = scan(records, schema.names)
    return _batch(records.data, cells, schema, first)


def _batch(data: Buffer, cells: Cells, schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Build the columns of ``schema`` from ``cells``. Raises `Refused`, `SchemaMismatch`."""
    columns = [
        _column(data, kinds, at, size, field, first)
        for kinds, at, size, field in zip(cells.kind, cells.at, cells.size, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(
    data: Buffer, kinds: Octets, at: Places, size: Places, field: pa.Field, first: int
) -> pa.Array:
    """Build one column. Raises `Refused`, `SchemaMismatch`."""
    some = int(np.bitwise_or.reduce(kinds))
    kind = some & ~EMPTY
    if not some:
        return pa.nulls(len(kinds), field.type)
    if kind not in (BYTES, FLOAT, INT):
        raise Refused  # records hold several kinds
    filled = kinds == kind
    if not filled.all():
        at, size = at[filled], size[filled]
    elif not is_list(field.type):
        return convert(field.name, _singles(kind, data, at, size), field.type)
    counts = filled.astype(np.int64)
    if is_list(field.type):
        values, counts[filled] = _lists(kind, data, at, size)
    else:
        values = _singles(kind, data, at, size)
    return example.shape(values, counts, field, first)


def _singles(kind: int, data: Buffer, at: Places, size: Places) -> pa.Array:
    """Return a column with one value per row. Raises `Refused`."""
    if kind == FLOAT:
        require(size == 4)
        return pa.array(unaligned(data, "<f4", at))
    if kind == INT:
        values, single = varints(words_of(data), at, size)
        require(single)
        return pa.array(values.view(np.int64))
    require(size.sum() <= MOST_BYTES)
    return binary_array(data, at, size)


def _lists(kind: int, data: Buffer, at: Places, size: Places) -> tuple[pa.Array, Places]:
    """Return the values of all lists, and the length of each list. Raises `Refused`."""
    if kind == FLOAT:
        require(size % 4 == 0)
        return pa.array(gathered(data, at, size).view(np.float32)), size >> 2
    if kind == INT:
        return _ints(data, at, size)
    return _singles(kind, data, at, size), np.ones(len(at), np.int64)


def _ints(data: Buffer, at: Places, size: Places) -> tuple[pa.Array, Places]:
    """Return the integers of all lists, and the length of each list. Raises `Refused`."""
    octets = gathered(data, at, size)
    stops = np.cumsum(size)
    last = np.flatnonzero(octets < 128)
    ends = np.searchsorted(last, stops)  # of each list, the index of its end among the numbers
    require(octets[stops[size > 0] - 1] < 128)
    numbers = octets[last].astype(np.uint64)
    before = np.concatenate([[-1], last[:-1]])
    long = np.flatnonzero(last - before > 1)
    if len(long):
        words = words_of(octets.tobytes() + PAD)
        numbers[long], whole = varints(words, before[long] + 1, (last - before)[long])
        require(whole)
    return pa.array(numbers.view(np.int64)), np.diff(ends, prepend=0)
