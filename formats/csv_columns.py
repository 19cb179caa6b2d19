"""Whole rows of CSV → Arrow columns by kernels: some hundred kilobytes at a time, which stay in the
processor's cache from where their fields are found to where the last column is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.formats import csv_fields, csv_values
from pipeprof.formats.base import Buffer
from pipeprof.formats.csv_rows import octets
from pipeprof.formats.types import as_bits, is_list

_AT_ONCE = 2**19
_ENDS = 2**17
"""Fields at once, if a row has not more of them than half of that."""
_FEW_ROWS = 256
"""For these a call costs as much as what it does: take more bytes."""
_MOST = 2**31 - 1
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Part:
    """Some of the rows, with their fields found."""

    data: Octets
    ends: npt.NDArray[np.int32]
    columns: int
    rows: int
    before: int
    """Rows in the parts before."""
    room: int
    """For so many rows: at least those until now, if possible all."""
    left: int
    """Bytes behind."""
    escaped: bool
    """Two quotes within quotes are one."""


class Column(Protocol):
    """One that is being read."""

    def read(self, part: Part) -> bool:
        """Whether all its fields in ``part`` are known for certain."""
        ...

    def array(self, rows: int) -> pa.Array | None:
        """``None``: it must be read again."""
        ...


def read_columns(
    rows: Buffer, columns: int, wanted: Sequence[tuple[int, pa.DataType]]
) -> tuple[int, list[pa.Array | None]]:
    """How many rows, and the columns of these numbers, read as these types, of lists and bytes
    their text: ``None`` for one that only Arrow can judge, or for all if that is the rows' shape.
    """
    unknown: tuple[int, list[pa.Array | None]] = (0, [None] * len(wanted))
    data = octets(rows)
    if len(data) and data[-1] != ord("\n"):
        data = octets(np.append(data, np.uint8(ord("\n"))).data)
    if not 0 < len(data) <= _MOST:
        return unknown
    reading = [_column(index, dtype) for index, dtype in wanted]
    ends = np.empty(max(_ENDS, 2 * columns + 66), np.int32)
    seen, scratch = np.zeros(2, np.bool_), np.zeros(64, np.uint8)
    at = count = room = 0
    step = _AT_ONCE
    while at < len(data):
        stop = min(at + step, len(data))
        found = csv_fields.find_fields(data, at, stop, columns, ends, seen, scratch)
        if found < 0 or (found == 0 and stop == len(data)):
            return unknown
        if found < _FEW_ROWS:
            step *= 2
        if found == 0:
            continue
        end, escaped = int(ends[found * columns]) + 1, bool(seen[csv_fields.ESCAPED])
        if count + found > room:
            # no more than 16 times as many: the rows behind may be long ones
            room = (count + found) * min(16, 1.02 * len(data) / end)
        part = Part(data, ends, columns, found, count, int(room) + 1, len(data) - end, escaped)
        reading = [each if each and each.read(part) else None for each in reading]
        at, count = end, count + found
    foreign = bool(seen[csv_fields.FOREIGN])
    return count, [_checked(each.array(count), foreign) if each else None for each in reading]


def _column(index: int, dtype: pa.DataType) -> Column | None:
    is_a = pa.types
    if is_a.is_string(dtype) or is_a.is_binary(dtype) or is_list(dtype):
        return _Text(index)
    if is_a.is_float32(dtype) or is_a.is_float64(dtype):
        return _Scalars(index, dtype, csv_values.read_floats, dtype.to_pandas_dtype())
    if is_a.is_integer(dtype):
        return _Scalars(index, dtype, csv_values.read_integers, np.int64)
    if is_a.is_boolean(dtype):
        return _Scalars(index, dtype, csv_values.read_flags, np.uint8)
    return None


def _checked(array: pa.Array | None, foreign: bool) -> pa.Array | None:
    """``None`` of text that is not UTF-8."""
    if foreign and array is not None and pa.types.is_string(array.type):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return None
    return array


class _Scalars:
    """Numbers or flags."""

    def __init__(self, index: int, dtype: pa.DataType, kernel: Any, kind: npt.DTypeLike) -> None:
        self._index, self._type, self._kernel = index, dtype, kernel
        self._values: npt.NDArray[Any] = np.empty(0, kind)
        self._valid = np.empty(0, np.uint8)
        self._nulls = 0

    def read(self, part: Part) -> bool:
        if part.room > len(self._values):
            self._values = _larger(self._values, part.room)
            self._valid = _larger(self._valid, part.room, filler=1)
        nulls: int = self._kernel(
            part.data,
            part.ends,
            self._index,
            part.columns,
            part.rows,
            self._values[part.before :],
            self._valid[part.before :],
        )
        self._nulls += nulls
        return nulls >= 0

    def array(self, rows: int) -> pa.Array | None:
        valid = as_bits(self._valid[:rows]) if self._nulls else None
        values, kind = self._values[:rows], self._type
        if pa.types.is_boolean(kind):
            return pa.Array.from_buffers(kind, rows, [valid, as_bits(values)], self._nulls)
        read = pa.from_numpy_dtype(values.dtype)
        array = pa.Array.from_buffers(read, rows, [valid, pa.py_buffer(values)], self._nulls)
        try:
            return array if read == kind else pc.cast(array, kind)
        except pa.ArrowInvalid:  # an integer that its type cannot hold
            return None


class _Text:
    def __init__(self, index: int) -> None:
        self._index = index
        self._offsets = np.zeros(1, np.int32)
        self._text = np.empty(0, np.uint8)

    def read(self, part: Part) -> bool:
        if part.room >= len(self._offsets):
            self._offsets = _larger(self._offsets, part.room + 1)
        offsets = self._offsets[part.before :]
        fields = (part.data, part.ends, self._index, part.columns, part.rows)
        end = int(offsets[0]) + csv_values.count_text(*fields)
        if end + csv_values.COPIED > len(self._text):
            share = (part.before + part.rows) / part.room
            most = min(end + part.left, int(1.1 * end / share))
            self._text = _larger(self._text, most + csv_values.COPIED)
        csv_values.read_text(*fields, offsets, self._text, part.escaped)
        return True

    def array(self, rows: int) -> pa.Array:
        offsets = pa.py_buffer(self._offsets[: rows + 1])
        text = pa.py_buffer(self._text[: int(self._offsets[rows])])
        return pa.Array.from_buffers(pa.string(), rows, [None, offsets, text], 0)


def _larger(array: npt.NDArray[Any], size: int, filler: int | None = None) -> npt.NDArray[Any]:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    if filler is not None:
        larger[len(array) :] = filler
    return larger
