"""Where the samples of an MDS shard lie, and how their columns are encoded.

A shard is: the number n of samples, n + 1 offsets, a text in JSON that describes the columns, and
the samples. Each number is a little-endian uint32. A sample is the sizes of its columns of variable
size, and then the bytes of all columns. (``streaming/base/format/mds/writer.py``, version 2.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Buffer
from pipeprof.formats.gather import Places

SIZE_BYTES = 4
"""Size of each number outside the columns."""
NUMBERS = {
    "int": pa.int64(), "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(),
    "uint64": pa.uint64(), "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(),
    "int64": pa.int64(), "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(),
}  # fmt: skip
"""Encodings of one number."""
_TEXTS = {
    "str": pa.string(), "json": pa.string(), "str_int": pa.int64(), "str_float": pa.float64(),
    "str_decimal": pa.float64(),
}  # fmt: skip
"""Encodings as text."""
_ARRAY = "ndarray"
_MOST_CONFIG_BYTES = 2**24


@dataclass(frozen=True)
class StoredColumn:
    """A column as it is stored."""

    name: str
    encoding: str
    size: int | None
    """Bytes of each value; ``None`` where they vary."""

    @property
    def array(self) -> pa.DataType | None:
        """The type of the values of an array; ``None`` where it is none, or where each array may
        have a type of its own."""
        kind, _, options = self.encoding.partition(":")
        return NUMBERS.get(options.partition(":")[0]) if kind == _ARRAY else None

    @property
    def dtype(self) -> pa.DataType:
        """The type as which it is read: of images and pickles, the bytes that are stored."""
        if self.encoding in NUMBERS:
            return NUMBERS[self.encoding]
        if self.array is not None:
            shape = self.encoding.split(":")[2:]
            return pa.list_(self.array, prod(map(int, shape[0].split(","))) if shape else -1)
        return _TEXTS.get(self.encoding, pa.binary())


@dataclass(frozen=True)
class Header:
    """The samples' places, and their columns."""

    offsets: Places
    """Where each sample begins, and where the last one ends. [samples + 1]"""
    columns: tuple[StoredColumn, ...]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.offsets) - 1

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(each.name, each.dtype) for each in self.columns])


def offsets_end(head: Buffer) -> int:
    """Return where the offsets end, which is where the description of the columns begins."""
    [samples] = np.frombuffer(head, "<u4", 1).tolist()
    return SIZE_BYTES * (2 + int(samples))


def header_end(head: Buffer) -> int:
    """Return where the description of the columns ends, which is where the first sample begins.
    Raises `CorruptData`."""
    [first] = np.frombuffer(head, "<u4", 1, SIZE_BYTES).tolist()
    if not 0 < first - offsets_end(head) <= _MOST_CONFIG_BYTES:
        raise CorruptData("its first offset is damaged, or it is no MDS shard.")
    return int(first)


def parse_header(head: Buffer, size: int | None) -> Header:
    """Return the header of a shard, whose first bytes are ``head``.

    Args:
        head: `header_end` bytes, or more.
        size: The bytes of the shard; ``None`` where they are not known.

    Raises:
        CorruptData: An offset or the description of the columns is damaged.
    """
    end = header_end(head)
    if end > len(head):
        raise CorruptData("its header is damaged, or changed while it was read.")
    offsets = parse_offsets(memoryview(head)[SIZE_BYTES : offsets_end(head)])
    if size is not None and offsets[-1] != size:
        raise CorruptData(
            f"its samples end at byte {offsets[-1]}, and it has {size}: truncated, or damaged."
        )
    return Header(offsets, parse_columns(memoryview(head)[offsets_end(head) : end]))


def parse_offsets(data: Buffer) -> Places:
    """Return the offsets. Raises `CorruptData` where one is before another."""
    offsets = np.frombuffer(data, "<u4").astype(np.int64)
    wrong = np.flatnonzero(np.diff(offsets) < 0)
    if len(wrong):
        raise CorruptData(f"sample {wrong[0]} ends before it begins: an offset is damaged.")
    return offsets


def parse_columns(data: Buffer) -> tuple[StoredColumn, ...]:
    """Return the columns that the description names. Raises `CorruptData`."""
    try:
        config: dict[str, Any] = orjson.loads(data)
        keys = ("column_names", "column_encodings", "column_sizes")
        columns = tuple(_column(*each) for each in zip(*(config[key] for key in keys), strict=True))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise CorruptData(f"the description of its columns is damaged ({error}).") from None
    return columns


def _column(name: Any, encoding: Any, size: Any) -> StoredColumn:
    """Return a column. Raises `ValueError`."""
    if not isinstance(name, str) or not isinstance(encoding, str):
        raise ValueError("a name or an encoding is no text")
    if size is not None and (type(size) is not int or size < 0):
        raise ValueError(f"column {name!r} has the size {size!r}")
    column = StoredColumn(name, encoding, size or None)
    dtype = column.dtype
    fixed = pa.types.is_fixed_size_list(dtype)
    width = dtype.value_type if fixed else dtype
    if fixed or encoding in NUMBERS:
        expected = width.bit_width // 8 * (dtype.list_size if fixed else 1)
        if column.size != expected:
            raise ValueError(f"column {name!r} is {encoding} and has the size {size!r}")
    return column
