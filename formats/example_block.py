"""A block of `tf.train.Example` records → columns: all at once where they are alike, scanned where
they can be, else by protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import message

from pipeprof.formats import example, example_alike
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
    scan,
)
from pipeprof.formats.types import convert, is_list
from pipeprof.formats.words import Words

_FEWEST_ROWS = 16
"""A step of the scan costs the same for one record as for many."""
_LARGE_BYTES = 100
"""A feature, with its key: of more, protobuf's messages cost less than a copy of the bytes."""


def decode(payloads: Sequence[bytes], schema: pa.Schema, first: int) -> pa.RecordBatch:
    """What `example.decode` gives and raises, several times sooner for many small records."""
    if len(payloads) >= _FEWEST_ROWS and len(schema) <= MOST_NAMES and _is_scalar(payloads[0]):
        if (batch := example_alike.decode(payloads, schema)) is not None:
            return batch
        try:
            return decode_scanned(payloads, schema, first)
        except Refused:
            pass
    return example.decode(payloads, schema, first)


def decode_scanned(payloads: Sequence[bytes], schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Raises `Refused`, and `SchemaMismatch` as `example.decode` does."""
    entries = scan(payloads, tuple(schema.names))
    block = _Block(entries, len(schema), len(payloads), first)
    columns = [block.column(place, field) for place, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_scalar(payload: bytes) -> bool:
    """Whether most features of this record hold at most one value, and a short one."""
    try:
        features = example.Example.FromString(payload).features.feature
    except message.DecodeError:
        return False
    kinds = ((feature, feature.WhichOneof("kind")) for feature in features.values())
    several = sum(len(getattr(feature, kind).value) > 1 for feature, kind in kinds if kind)
    return 2 * several < len(features) and len(payload) < _LARGE_BYTES * len(features)


class _Block:
    """The entries laid out as a table, a row for each name."""

    def __init__(self, entries: Entries, names: int, rows: int, first: int) -> None:
        self._entries, self._rows, self._first = entries, rows, first
        # all of them, asked for or not: a damaged one is an error
        self._features = {entry: self._feature(entry) for entry in _places(entries.code == ODD)}
        cells = entries.column * rows + entries.row  # those of other names: behind the table
        self._codes: Octets = np.zeros((names + 1, rows), np.uint8)
        self._codes.reshape(-1)[cells] = entries.code
        self._bits: Words = np.zeros((names + 1, rows), np.uint64)
        self._bits.reshape(-1)[cells] = entries.bits
        asked = np.count_nonzero(entries.column < names)
        if np.count_nonzero(self._codes[:names]) != asked:
            raise Refused  # a record holds a name twice
        self._any = np.bitwise_or.reduce(self._codes, axis=1)
        self._every = np.bitwise_and.reduce(self._codes, axis=1)

    def column(self, place: int, field: pa.Field) -> pa.Array:
        codes = int(self._any[place])
        if codes == 0:
            return pa.nulls(self._rows, field.type)
        kind = codes & ~EMPTY
        if kind not in (BYTES, FLOAT, INT):
            return example.column(self._messages(place, field.name), field, self._first)
        if self._every[place] == codes == kind and not is_list(field.type):
            return convert(field.name, self._values(kind, self._bits[place]), field.type)
        held = self._codes[place] == kind
        values = self._values(kind, self._bits[place][held])
        return example.shape(values, held.astype(np.int64), field, self._first)

    def _values(self, kind: int, bits: Words) -> pa.Array:
        if kind == BYTES:
            counts = (bits & np.uint64(255)).astype(np.int64)
            ends = np.zeros(len(bits) + 1, np.int32)
            np.cumsum(counts, out=ends[1:])
            moved = (bits >> np.uint64(8)).astype(np.int64) - ends[:-1]
            places = np.arange(ends[-1]) + np.repeat(moved, counts)
            cells = np.frombuffer(self._entries.data, np.uint8)[places]
            return pa.Array.from_buffers(
                pa.binary(), len(bits), [None, pa.py_buffer(ends), pa.py_buffer(cells)]
            )
        if kind == FLOAT:
            return pa.array(bits.astype(np.uint32).view(np.float32))
        return pa.array(bits.view(np.int64))

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
