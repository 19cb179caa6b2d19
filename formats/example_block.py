"""A block of `tf.train.Example` records → columns: by compiled code where there is numba, all at
once where the records are alike, scanned where they can be, else by protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import message

from pipeprof.errors import SchemaMismatch
from pipeprof.formats import example, example_alike
from pipeprof.formats.example_cells import Cells, compiled
from pipeprof.formats.example_keys import MOST_NAMES
from pipeprof.formats.example_scan import (
    BYTES,
    EMPTY,
    FLOAT,
    INT,
    ODD,
    Entries,
    Octets,
    Refused,
    require,
    scan,
)
from pipeprof.formats.framing import Records
from pipeprof.formats.types import is_list
from pipeprof.formats.words import Places, Words

_FEWEST_ROWS = 16
"""A step of the scan costs the same for one record as for many."""
_MOST_BYTES = 2**32
"""Of a block: places in it are told in so many bits."""


def infer(records: Records) -> dict[str, pa.DataType]:
    """What `example.infer` gives and raises, several times sooner where all columns are scalar."""
    try:
        if len(records) >= _FEWEST_ROWS:
            return _inferred(records)
    except Refused:
        pass
    return example.infer(records)


def _inferred(records: Records) -> dict[str, pa.DataType]:
    """Raises `Refused`, too where a record has a name that the first has not."""
    names = tuple(sorted(example.infer(records[:1])))
    require(0 < len(names) <= MOST_NAMES)
    entries = scan(records, names, (False,) * len(names))
    require(bool((entries.column < len(names)).all()))
    kinds = np.zeros(len(names), np.uint8)
    np.bitwise_or.at(kinds, entries.column, entries.code & ~np.uint8(EMPTY))
    types = {BYTES: pa.binary(), FLOAT: pa.float32(), INT: pa.int64()}
    require(all(kind in types for kind in kinds.tolist()))
    return dict(zip(names, map(types.__getitem__, kinds.tolist()), strict=True))


def decode(payloads: Sequence[bytes], schema: pa.Schema, first: int) -> pa.RecordBatch:
    """What `example.decode` gives and raises, several times sooner."""
    records = Records.of(payloads)
    if len(schema) <= MOST_NAMES and len(records.data) < _MOST_BYTES:
        try:
            if kernel := compiled():
                return decode_compiled(kernel, records, schema, first)
        except (Refused, SchemaMismatch):  # protobuf says what is wrong, and where first
            pass
        try:
            if len(records) >= _FEWEST_ROWS:
                batch = example_alike.decode(records, schema)
                return batch if batch is not None else decode_scanned(records, schema, first)
        except (Refused, SchemaMismatch):
            pass
    return example.decode(records, schema, first)


def decode_compiled(
    kernel: ModuleType, records: Records, schema: pa.Schema, first: int
) -> pa.RecordBatch:
    """Raises `Refused`, and `SchemaMismatch` as `example.decode` does."""
    names, lengths = _padded(tuple(schema.names), 8 * kernel.KEY_WORDS)
    lists = [*map(is_list, schema.types)]
    code: Octets = np.zeros((len(schema), len(records)), np.uint8)
    bits: Words = np.empty((len(schema), len(records)), np.uint64)
    octets = np.frombuffer(records.data, np.uint8)
    asked = names, lengths, np.array(lists, bool), *kernel.empty_table()
    require(kernel.walk(octets, records.starts, records.stops, *asked, code, bits))
    cells = Cells(records.data, code, bits, first)
    columns = []
    for place, (field, listed) in enumerate(zip(schema, lists, strict=True)):
        column = cells.column(place, field, listed)
        require(column is not None)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@lru_cache(maxsize=16)
def _padded(names: tuple[str, ...], size: int) -> tuple[Octets, Places]:
    """The bytes of all names, each followed by zeros up to ``size``, and how many each has. Raises
    `Refused`."""
    texts = [name.encode() for name in names]
    require(all(len(text) < size for text in texts))
    octets = np.frombuffer(b"".join(text.ljust(size, b"\0") for text in texts), np.uint8)
    return octets, np.array([*map(len, texts)], np.int64)


def decode_scanned(payloads: Sequence[bytes], schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Raises `Refused`, and `SchemaMismatch` as `example.decode` does."""
    records = Records.of(payloads)
    entries = scan(records, tuple(schema.names), tuple(map(is_list, schema.types)))
    block = _Block(entries, len(schema), len(records), first)
    columns = [block.column(place, field) for place, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _Block:
    """The entries laid out as a table, a row for each name."""

    def __init__(self, entries: Entries, names: int, rows: int, first: int) -> None:
        self._entries, self._rows, self._first = entries, rows, first
        # all of them, asked for or not: a damaged one is an error
        odd = _places(entries.code == ODD)
        require(2 * len(odd) <= len(entries.code))  # or protobuf's messages cost less
        self._features = {entry: self._feature(entry) for entry in odd}
        places = entries.column * rows + entries.row  # those of other names: behind the table
        code: Octets = np.zeros((names + 1, rows), np.uint8)
        code.reshape(-1)[places] = entries.code
        bits: Words = np.zeros((names + 1, rows), np.uint64)
        bits.reshape(-1)[places] = entries.bits
        asked = np.count_nonzero(entries.column < names)
        require(np.count_nonzero(code[:names]) == asked)  # else a record holds a name twice
        self._cells = Cells(entries.data, code, bits, first)

    def column(self, place: int, field: pa.Field) -> pa.Array:
        column = self._cells.column(place, field, is_list(field.type))
        if column is None:
            column = example.column(self._messages(place, field.name), field, self._first)
        return column

    def _messages(self, place: int, name: str) -> list[dict[str, Any]]:
        """This feature of each row, as far as it has it."""
        rows: list[dict[str, Any]] = [{} for _ in range(self._rows)]
        for entry in _places(self._entries.column == place):
            known = self._features.get(entry)
            feature = self._feature(entry) if known is None else known
            rows[self._entries.row[entry]][name] = feature
        return rows

    def _feature(self, entry: int) -> Any:
        """Raises `Refused`: protobuf says of the whole which record is damaged first."""
        entries = self._entries
        try:
            return example.Feature.FromString(
                entries.data[entries.value[entry] : entries.stop[entry]]
            )
        except message.DecodeError:
            raise Refused from None


def _places(where: Any) -> list[int]:
    return [int(place) for place in np.flatnonzero(where)]
