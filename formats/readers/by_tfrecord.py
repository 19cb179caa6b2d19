"""Decode by the package tfrecord, one record after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, file_in_memory, plain_bytes
from pipeprof.formats.tfrecord import example
from pipeprof.formats.tfrecord.format import recognise

Row = dict[str, Any]
_NO_VALUES: np.ndarray[Any, Any] = np.array([])


class TFRecordPackage:
    """The reader; see the module. It checks no CRC, and cuts zero bytes off the ends of bytes that
    lie in lists."""

    name = module = "tfrecord"
    fork_safe = True

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        codec = recognise(bytes(data[:64]))
        if codec == "zlib":  # which the package does not know
            data, codec = plain_bytes(data, codec), None
        with file_in_memory(data) as path:
            rows = _rows(path, list(schema.names), codec)
        return pa.table([_column(rows, field) for field in schema], schema=schema)


def _rows(path: str, names: Sequence[str], compression: str | None) -> list[Row]:
    from tfrecord.reader import example_loader

    try:
        return list(example_loader(path, None, names, compression_type=compression))
    except KeyError:  # a record lacks one of them
        return list(example_loader(path, None, None, compression_type=compression))


def _column(rows: Sequence[Row], field: pa.Field) -> pa.Array:
    cells = [_values(row.get(field.name, _NO_VALUES)) for row in rows]
    counts = np.array([len(cell) for cell in cells], np.int64)
    filled = [cell for cell in cells if len(cell)]
    if not filled:
        return pa.nulls(len(rows), field.type)
    joined = np.concatenate(filled)
    of_bytes = joined.dtype.kind in "OS"
    values = pa.array(joined.tolist(), pa.binary()) if of_bytes else pa.array(joined)
    return example.shape(values, counts, field, 0)


def _values(cell: Any) -> Any:
    """Return the values of a feature. A single one of bytes comes as it is."""
    return np.array([cell], object) if isinstance(cell, bytes) else cell


READER: Reader = TFRecordPackage()
