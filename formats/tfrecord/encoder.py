"""Write rows as framed `tf.train.Example` records, with protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.formats.decompress import Deflater
from pipeprof.formats.tfrecord.example import KINDS, Example, kind_of
from pipeprof.formats.tfrecord.framing import frame
from pipeprof.formats.types import check_batch, convert, is_list

_ABSENT = {"bytes_list": b"", "float_list": float("nan"), "int64_list": 0}


class TFRecordEncoder:
    """Frames the record of each row, and compresses the whole object if asked."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        for field in schema:
            kind_of(field)
        self._schema = schema
        self._deflater = Deflater(compression)

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        return self._deflater.compress(b"".join(map(frame, encode(batch))))

    def finish(self) -> bytes:
        return self._deflater.compress(b"", finish=True)


def encode(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Yield the record of each row. A null becomes a feature without values. Raises
    `SchemaMismatch`.

    A null inside a list has no place in an Example. It is stored as a tensor would hold it: NaN, 0
    or no bytes.
    """
    columns = [
        (field.name, kind_of(field), _values(field, column))
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    for row in range(batch.num_rows):
        record = Example()
        features = record.features.feature
        for name, kind, values in columns:
            feature_list = getattr(features[name], kind)
            feature_list.SetInParent()  # even if there are no values
            feature_list.value.extend(values[row])
        yield record.SerializeToString(deterministic=True)


def _values(field: pa.Field, column: pa.Array) -> list[list[Any]]:
    """Return the values that the feature of each row holds."""
    kind = kind_of(field)
    dtype, absent = KINDS[kind], pa.scalar(_ABSENT[kind], KINDS[kind])
    if not is_list(field.type):
        cells = convert(field.name, column, dtype).to_pylist()
        return [[] if cell is None else [cell] for cell in cells]
    lists = convert(field.name, column, pa.list_(dtype))
    counts = pc.list_value_length(lists).fill_null(0).to_pylist()
    values = iter(pc.fill_null(lists.flatten(), absent).to_pylist())
    return [[next(values) for _ in range(count)] for count in counts]
