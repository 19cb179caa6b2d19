"""The headers of NumPy's arrays, and arrays as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np
import numpy.lib.format as npy
import pyarrow as pa

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats.base import Buffer
from pipeprof.formats.types import convert, first_line

MAGIC = b"\x93NUMPY"
MOST_HEADER_BYTES = 2**16
"""Most bytes of a header, with what is before it."""
_NO_CHARACTER, _SURROGATES = 0x110000, (np.uint32(0xD800), 0x800)
"""The first number that is no character, and where surrogates begin and how many there are."""
_COUNTS = "Mm"
"""Kinds of times and durations, which are read as their count."""


@dataclass(frozen=True)
class ArrayHeader:
    """What the header of an array says."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    begin: int
    """Where the values begin."""

    @property
    def nbytes(self) -> int:
        """The bytes of all values."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def rows(self) -> int:
        """The length of the first axis; 1 without an axis."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize


def header_end(head: bytes) -> int:
    """Return where the values of a file begin, which has at least 12 bytes. The length of the
    header has 2 bytes in version 1 of the format, and 4 later."""
    at, width = len(MAGIC) + 2, 2 if head[len(MAGIC)] == 1 else 4
    return at + width + int.from_bytes(head[at : at + width], "little")


def read_header(file: IO[bytes]) -> ArrayHeader:
    """Read the header of an array, up to its values. Raises `CorruptData`, `SchemaMismatch`."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        shape, fortran, dtype = readers[npy.read_magic(file)](file, MOST_HEADER_BYTES)
    except Exception as error:  # NumPy tokenises a header that does not parse
        raise CorruptData(
            f"the header of an array is damaged, or of a later version ({first_line(error)})."
        ) from error
    if any(length < 0 for length in shape):
        raise CorruptData(f"an array is said to have the shape {shape}.")
    if fortran and len(shape) > 1:
        raise SchemaMismatch(
            "its array is in Fortran order, in which no row lies in one piece; save "
            "np.ascontiguousarray of it."
        )
    header = ArrayHeader(shape, dtype, file.tell())
    if header.rows and not header.row_bytes:
        raise SchemaMismatch(f"the rows of an array of shape {shape} and {dtype} have no bytes.")
    return header


def values(data: Buffer, header: ArrayHeader, rows: int) -> np.ndarray[Any, Any]:
    """Return ``rows`` rows, whose bytes are ``data``."""
    flat = np.frombuffer(data, header.dtype, rows * prod(header.shape[1:]))
    return flat.reshape(rows, *header.shape[1:])


def columns_of(name: str, header: ArrayHeader, whole: bool) -> list[tuple[str, pa.DataType]]:
    """Return the columns of an array: its fields, if it has some, or else one of this ``name``.

    A row of more than one axis becomes a list. With ``whole``, all of the array is one row.
    """
    names = header.dtype.names
    if names is not None and not whole:
        fields: Mapping[str, Any] = header.dtype.fields or {}
        return [
            (each, _type(fields[each][0].base, (*fields[each][0].shape, *header.shape[1:])))
            for each in names
        ]
    if whole:
        value = _plain(header.dtype)
        return [(name, pa.list_(value) if header.shape else value)]
    return [(name, _type(header.dtype, header.shape[1:]))]


def as_columns(
    array: np.ndarray[Any, Any], name: str, fields: Sequence[pa.Field], whole: bool
) -> dict[str, pa.Array]:
    """Return those of ``fields`` that ``array`` has. Raises `CorruptData`, `SchemaMismatch`."""
    parts = {name: array}
    if array.dtype.names is not None and not whole:
        parts = {each: array[each] for each in array.dtype.names}
    return {
        field.name: convert(field.name, _column(parts[field.name], whole), field.type)
        for field in fields
        if field.name in parts
    }


def _type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> pa.DataType:
    """Return the type of a row of this shape; one without a tensor where there is none."""
    value = _plain(dtype)
    return pa.list_(value, prod(shape)) if shape and not pa.types.is_null(value) else value


def _plain(dtype: np.dtype[Any]) -> pa.DataType:
    """Return the type of a value; a type that has no tensor for objects, records and the like."""
    if dtype.kind in _COUNTS:
        return pa.int64()
    if dtype.kind == "S":
        return pa.binary()
    if dtype.kind == "U":
        return pa.string()
    if dtype.kind in "biuf" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(dtype.newbyteorder("="))
    return pa.null()


def _check_text(array: np.ndarray[Any, Any]) -> None:
    """Raise `CorruptData` where a text, of 4 bytes a character, has one that does not exist."""
    if array.dtype.kind == "U" and array.dtype.itemsize:
        native = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
        codes = native.view(np.uint32)
        if ((codes >= _NO_CHARACTER) | (codes - _SURROGATES[0] < _SURROGATES[1])).any():
            raise CorruptData("a text holds characters that do not exist.")


def _column(array: np.ndarray[Any, Any], whole: bool) -> pa.Array:
    """Return an array of one value or list for each row. Raises `CorruptData`, `SchemaMismatch`."""
    rows = 1 if whole else len(array)
    flat = array.reshape(-1)
    if pa.types.is_null(_plain(flat.dtype)):
        raise SchemaMismatch(f"an array of {flat.dtype} cannot be read.")
    if flat.dtype.kind in "SU":
        _check_text(flat)
        cells = pa.array(flat.tolist(), _plain(flat.dtype))
    else:
        native = np.ascontiguousarray(flat, flat.dtype.newbyteorder("="))
        counts = native.view(np.int64) if native.dtype.kind in _COUNTS else native
        cells = pa.array(counts)
    if whole and array.shape:
        return pa.ListArray.from_arrays(pa.array([0, len(cells)], pa.int32()), cells)
    if array.ndim > 1:
        return pa.FixedSizeListArray.from_arrays(cells, len(cells) // rows)
    return cells
