"""The column chunks of a footer as a table, where the footer is plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeprof.formats.base import Range
from pipeprof.formats.compiled import kernels

Longs = npt.NDArray[np.int64]

_KERNELS = "pipeprof.formats.parquet_footer_kernel"
_ABSENT = -(2**62)
_TYPE, _CODEC, _VALUES, _LENGTH, _DATA, _DICTIONARY = 1, 4, 5, 7, 9, 11
_REQUIRED, _LEVELS = slice(1, 10), slice(12, 14)
_CODECS = 8
_FIRST = 4
"""Byte, behind the magic."""
_LEAST_BYTES = 24
"""Of a column chunk, in a footer."""
_NONE, _NO_ROW_GROUPS = b"\0", b"\x0c"
"""The number 0, and an empty list of structs."""


@dataclass(frozen=True)
class Table:
    """Made by `table_of`."""

    rows: Sequence[int]
    """Of each row group."""
    types: Sequence[int]
    """Of each column, the number of its physical type; -1: something about it is unusual."""
    codecs: Sequence[Sequence[int]]
    """Of each row group and each of its columns, as below."""
    starts: Sequence[Sequence[int]]
    """Byte of the file."""
    lengths: Sequence[Sequence[int]]
    """In bytes."""
    values: Sequence[Sequence[int]]
    """As many as rows, or more where they are lists; nulls count too."""
    flat: Sequence[bool]
    """Of each column, whether it has as many values as rows everywhere."""
    levels: Sequence[tuple[int, int]]
    """Of each column, how many levels of repetition and of definition are counted; 0: none."""
    stretch: Range
    """Where in the footer the list of row groups begins and ends."""
    total: Range
    """The same of the number of all rows, before it."""

    def head(self, data: bytes) -> bytes:
        """The same footer, of a file without rows."""
        (number, after), (begin, end) = self.total, self.stretch
        head = data[:number] + _NONE + data[after:begin] + _NO_ROW_GROUPS + data[end:-8]
        return head + len(head).to_bytes(4, "little") + data[-4:]


def _table(rows: Longs, chunks: Longs, end: int, stretch: Range, total: Range) -> Table:
    """``chunks``: [row groups, columns, fields]."""
    stored, codecs, values = chunks[..., _TYPE], chunks[..., _CODEC], chunks[..., _VALUES]
    data, dictionary, length = chunks[..., _DATA], chunks[..., _DICTIONARY], chunks[..., _LENGTH]
    has = (dictionary != _ABSENT) & (dictionary != 0)
    start = np.where(has, dictionary, data)
    usual = ~has | (dictionary < data)
    usual &= (codecs >= 0) & (codecs < _CODECS) & (values >= rows[:, None])
    usual &= (start >= _FIRST) & (length >= 0) & (length <= end) & (start <= end - length)
    same = (usual & (stored == stored[0])).all(0)
    levels = np.where(chunks[..., _LEVELS] == _ABSENT, 0, chunks[..., _LEVELS])
    same &= (levels == levels[0]).all((0, -1))
    return Table(
        rows.tolist(),
        np.where(same, stored[0], -1).tolist(),
        codecs.tolist(),
        start.tolist(),
        length.tolist(),
        values.tolist(),
        (values == rows[:, None]).all(0).tolist(),
        [tuple(each) for each in levels[0].tolist()],
        stretch,
        total,
    )


def table_of(data: bytes, end: int) -> Table | None:
    """Of a footer with its length and magic, which begins at byte ``end``; ``None``: it is
    unusual, and for Arrow to judge."""
    kernel = kernels(_KERNELS)
    if kernel is None:
        return None
    most = len(data) // _LEAST_BYTES + 1
    groups, chunks = np.empty((most, 3), np.int64), np.empty((most, kernel.FIELDS), np.int64)
    footer = np.frombuffer(data, np.uint8)[:-8]
    number, count, begin, stop, total, after = kernel.chunks_of(footer, groups, chunks)
    if number < 1 or count % number:
        return None
    columns = count // number
    if (groups[:number, 0] != np.arange(0, count, columns)).any() or not columns:
        return None
    table = chunks[:count].reshape(number, columns, kernel.FIELDS)
    if (table[..., _REQUIRED] == _ABSENT).any() or not 0 < total < after < begin:
        return None
    return _table(groups[:number, 2], table, end, (begin, stop), (total, after))
