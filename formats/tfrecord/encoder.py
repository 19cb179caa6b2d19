"""Columns → `tf.train.Example` records, byte for byte as protobuf writes them in the order of their
keys, without a message for each row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.formats.decompress import Codec, deflater
from pipeprof.formats.tfrecord.example import KINDS, kind_of
from pipeprof.formats.tfrecord.framing import frame
from pipeprof.formats.tfrecord.varint import Places
from pipeprof.formats.types import check_batch, convert, is_list

_TAGS = {"bytes_list": b"\x0a", "float_list": b"\x12", "int64_list": b"\x1a"}
_ABSENT = {"bytes_list": b"", "float_list": float("nan"), "int64_list": 0}
_END = b"\xff"
"""Beyond every byte of a name."""


class TFRecordEncoder:
    """Frames each row's record, and compresses the whole if asked."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        for field in schema:
            kind_of(field)
        self._schema = schema
        codecs: dict[str, Codec] = {"gzip": "gzip", "zlib": "zlib"}
        self._deflater = deflater(codecs[compression]) if compression in codecs else None

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        data = b"".join(frame(record) for record in encode(batch))
        return bytes(self._deflater.compress(data)) if self._deflater else data

    def finish(self) -> bytes:
        return bytes(self._deflater.flush()) if self._deflater else b""


def encode(batch: pa.RecordBatch) -> list[bytes]:
    """Columns → records, a row each. A null is a feature without values. Raises `SchemaMismatch`.

    A null inside a list has no place in an Example: it is stored as what it is in a tensor, NaN,
    0 or no bytes.
    """
    # as protobuf sorts them: a name comes behind those that it is the beginning of
    order = sorted(range(len(batch.schema)), key=lambda at: batch.schema.names[at].encode() + _END)
    parts = [part for at in order for part in _parts(batch.schema.field(at), batch.column(at))]
    rows = map(b"".join, zip(*parts, strict=True)) if parts else [b""] * batch.num_rows
    return [_field(b"\x0a", row) for row in rows]


class _Before(dict[int, bytes]):
    """What stands in each entry of one column before values of so many bytes."""

    def __init__(self, name: str, kind: str) -> None:
        self._key = _field(b"\x0a", name.encode())
        self._tag, self._packed = _TAGS[kind], kind != "bytes_list"

    def __missing__(self, size: int) -> bytes:
        inner = b"\x0a" + _varint(size) if self._packed and size else b""
        listed = self._tag + _varint(len(inner) + size) + inner
        value = self._key + b"\x12" + _varint(len(listed) + size) + listed
        self[size] = b"\x0a" + _varint(len(value) + size) + value
        return self[size]


def _parts(field: pa.Field, column: pa.Array) -> tuple[list[bytes], list[bytes]]:
    """Of each row what is before the values of this column in its entry, and the values."""
    kind = kind_of(field)
    before, contents = _Before(field.name, kind), _contents(field, column, kind)
    return [before[len(content)] for content in contents], contents


def _contents(field: pa.Field, column: pa.Array, kind: str) -> list[bytes]:
    """The values of each row, as they stand in its list."""
    values, ends = _flat(field, column, kind)
    if kind == "bytes_list":
        cells = [_field(b"\x0a", cell) for cell in values.to_pylist()]
        if len(cells) == len(ends) - 1 and (np.diff(ends) == 1).all():
            return cells
        return [b"".join(cells[start:end]) for start, end in _between(ends)]
    if kind == "float_list":
        data, ends = values.to_numpy().tobytes(), 4 * ends
    else:
        data, sizes = _varints(values.to_numpy())
        ends = np.concatenate([[0], np.cumsum(sizes)])[ends]
    return [data[start:end] for start, end in _between(ends)]


def _between(ends: Places) -> Iterator[tuple[int, int]]:
    places = ends.tolist()
    return pairwise(places)


def _flat(field: pa.Field, column: pa.Array, kind: str) -> tuple[pa.Array, Places]:
    """All values, and of which of them each row consists: int64 [n + 1]."""
    dtype = KINDS[kind]
    if is_list(field.type):
        lists = convert(field.name, column, pa.list_(dtype))
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        values = pc.fill_null(lists.flatten(), pa.scalar(_ABSENT[kind], dtype))
    else:
        cells = convert(field.name, column, dtype)
        counts = cells.is_valid().to_numpy(zero_copy_only=False)
        values = cells.drop_null()
    return values, np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _varints(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[bytes, Places]:
    """All numbers end to end, and the bytes of each."""
    left = numbers.view(np.uint64)
    most = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    cells = np.empty((len(left), most), np.uint8)
    sizes = np.ones(len(left), np.int64)
    for byte in range(most):
        cells[:, byte] = left & np.uint64(127) | np.uint64(128)
        left = left >> np.uint64(7)
        sizes += left > 0
    cells[np.arange(len(left)), sizes - 1] &= 127
    return cells[np.arange(most) < sizes[:, None]].tobytes(), sizes


def _varint(number: int) -> bytes:
    if number < 128:
        return bytes([number])
    return bytes([number & 127 | 128]) + _varint(number >> 7)


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content
