"""A format whose objects another library decodes, each as a whole.

The format finds the columns, so that all readers give the same ones. The library gets an object's
bytes, so that reading and decoding are timed apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError
from pipeprof.formats import text_cells
from pipeprof.formats.base import (
    Decoding,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    fetch,
)
from pipeprof.formats.jsonl import columns as json_columns
from pipeprof.formats.readers.base import Reader, unforkable
from pipeprof.formats.types import convert, first_line, one_array

_BATCH_ROWS = 65_536
"""Rows that are handed on at a time."""


def _as_stored(dtype: pa.DataType) -> pa.DataType:
    return dtype


def _from_text(column: str, read: pa.Array, dtype: pa.DataType) -> pa.Array:
    if read.type == dtype:
        return read
    plain = convert(column, read, text_cells.read_type(dtype))
    if pa.types.is_string(plain.type):
        plain = plain.fill_null("")  # CSV cannot tell one from the other
    return one_array(text_cells.from_text(column, pa.chunked_array([plain]), dtype))


def _from_json(column: str, read: pa.Array, dtype: pa.DataType) -> pa.Array:
    plain = convert(column, read, json_columns.read_type(dtype))
    return json_columns.from_json(column, plain, dtype)


_CELLS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Callable[..., pa.Array]]] = {
    "csv": (text_cells.read_type, _from_text),
    "jsonl": (json_columns.read_type, _from_json),
}
"""Of formats that cannot store each type: the type to ask a reader for, and how that is converted.
"""


@dataclass(frozen=True)
class WholeObjects:
    """``inner``, with each object decoded by ``reader``. Nothing is written by it."""

    inner: Format
    reader: Reader

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def unforkable(self) -> str | None:
        return unforkable(self.reader)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Find the columns as the format does; the object is one split."""
        plan: FilePlan = yield from self.inner.plan(size, columns, types, options)
        counts = [split.rows for split in plan.splits]
        rows = None if None in counts else sum(count or 0 for count in counts)
        return replace(plan, splits=(Split(0, size, rows),) if plan.splits else ())

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        data = yield from fetch(0, size)
        asked_type, converted = _CELLS.get(self.inner.name, (_as_stored, convert))
        asked = pa.schema([(field.name, asked_type(field.type)) for field in schema])
        try:
            table = self.reader.read(self.inner.name, data, asked)
            arrays = [
                converted(field.name, one_array(table.column(field.name)), field.type)
                for field in schema
            ]
        except FormatError:
            raise
        except Exception as error:  # each library has errors of its own
            raise CorruptData(
                f"{self.reader.name} cannot read it ({type(error).__name__}: {first_line(error)})."
            ) from error
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        for first in range(0, batch.num_rows, _BATCH_ROWS):
            yield batch.slice(first, _BATCH_ROWS)
