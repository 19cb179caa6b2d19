"""The kernel that walks through a footer of Parquet, which is in Thrift's compact protocol.

Only the list of row groups is looked at closely. It must have every field that Arrow insists on,
each of its own kind, and none of those that are rare; the rest is stepped over.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeprof.formats.compiled import kernel
from pipeprof.formats.parquet_page_kernels import ABSENT, number_at

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

FIELDS = 14
"""Numbers for each column chunk, by the ids of `ColumnMetaData`: of lists their lengths; at 8 the
`file_offset` of the chunk; at 12 and 13 how many levels its `SizeStatistics` count, of repetition
and of definition."""
_FILE_OFFSET, _LEVELS = 8, 12
_STOP, _TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64 = 0, 1, 2, 3, 4, 5, 6
_DOUBLE, _BINARY, _LIST, _STRUCT = 7, 8, 9, 12
_DEPTH = 12
# how deep these structs lie: a list is one deeper than what it is in, and what is in it one more
_FILE, _GROUPS, _GROUP, _COLUMNS, _CHUNK, _META, _PART, _ELEMENT = range(8)
_ROWS, _ROW_GROUPS = 3, 4  # ids of fields: in a file, and in `ColumnMetaData`
_STATISTICS, _ENCODING_STATS, _SIZES = 12, 13, 16


@kernel()
def long_at(data: Bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of up to 63 bits, and where it ends: -1, where it does not."""
    value, shift = np.uint64(0), np.uint64(0)
    while at < len(data) and shift < 63:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < 0x80:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return 0, -1


@kernel()
def is_usual(depth: int, field: int, part: int, kind: int, element: int) -> bool:
    """Whether a field within the row groups may be of this kind; ``part``: the field of
    `ColumnMetaData` in which it is, ``element``: the kind in a list."""
    number = kind in (_INT16, _INT32, _INT64)
    if depth == _GROUP:
        if field == 1:
            return kind == _LIST and element == _STRUCT
        return kind == _INT64 if field in (2, 3) else number and field in (5, 6, 7)
    if depth == _CHUNK:
        if field == 3:
            return kind == _STRUCT
        return kind == _INT64 if field == 2 else number and field in (4, 5, 6, 7)
    if depth == _META:
        if field in (2, 3):
            return kind == _LIST and element == (_INT32 if field == 2 else _BINARY)
        if field in (_STATISTICS, _SIZES):
            return kind == _STRUCT
        if field == _ENCODING_STATS:
            return kind == _LIST and element == _STRUCT
        if field in (1, 4):
            return kind == _INT32
        return kind == _INT64 if field in (5, 6, 7, 9, 10, 11) else number and field in (14, 15)
    return depth != _ELEMENT or part != _ENCODING_STATS or kind == _INT32


@kernel()
def scalar(data: Bytes, at: int, kind: int) -> tuple[int, int]:
    """A value, if it is an integer, and where it ends: -1, where it does not."""
    if kind in (_INT16, _INT32, _INT64):
        return long_at(data, at)
    if kind == _BINARY:
        length, at = number_at(data, at, len(data))
        return 0, at + length if at >= 0 else -1
    if kind == _DOUBLE:
        return 0, at + 8
    if kind == _BYTE:
        return 0, at + 1
    return 0, at if kind in (_TRUE, _FALSE) else -1


@kernel()
def elements(data: Bytes, at: int) -> tuple[int, int, int]:
    """Of a list how many elements it has, of which kind, and where they begin: -1, nowhere."""
    if at >= len(data):
        return 0, 0, -1
    count, element = np.int64(data[at]) >> 4, np.int64(data[at]) & 15
    at += 1
    if count == 15:
        count, at = number_at(data, at, len(data))
    known = _BYTE <= element <= _LIST or element == _STRUCT
    return (count, element, at) if known and count <= len(data) - at else (0, 0, -1)


@kernel()
def entered(
    groups: Longs, group: int, chunks: Longs, chunk: int, depth: int, part: int, field: int,
    count: int,
) -> tuple[int, int]:  # fmt: skip
    """A list of so many elements begins, or a struct, in ``field`` of what is in ``part``: which
    row group and which column chunk is read from then on; -1: there is no room for it."""
    if depth == _GROUPS:
        group += 1
        if group == len(groups):
            return -1, -1
        groups[group] = -1
    elif depth == _GROUP:
        groups[group, 0] = chunk + 1
    elif depth == _COLUMNS:
        chunk += 1
        if chunk == len(chunks):
            return -1, -1
        chunks[chunk] = ABSENT
    elif depth == _META and field in (2, 3):
        chunks[chunk, field] = count
    elif depth == _PART and part == _SIZES and field in (2, 3):
        chunks[chunk, _LEVELS - 2 + field] = count
    return group, chunk


@kernel()
def note(
    groups: Longs, group: int, chunks: Longs, chunk: int, depth: int, field: int, value: int
) -> None:
    """The value of a field, where it is one that is wanted."""
    if depth == _GROUP and field in (2, 3):
        groups[group, field - 1] = value
    elif depth == _CHUNK and field == 2:
        chunks[chunk, _FILE_OFFSET] = value
    elif depth == _META and field < _STATISTICS:
        chunks[chunk, field] = value


@kernel("UniTuple(i8, 6)(Array(u1, 1, 'C', True), i8[:, ::1], i8[:, ::1])")
def chunks_of(data: Bytes, groups: Longs, chunks: Longs) -> tuple[int, int, int, int, int, int]:
    """Find the column chunks of a footer: how many row groups there are, how many chunks, and
    where the list of row groups begins and ends, and the number of all rows before it; -1 row
    groups: something is unusual.

    ``groups``: of each which of ``chunks`` is its first, its size, its rows.
    """
    none = (-1, 0, 0, 0, 0, 0)
    group, chunk, begin, end, total, after = -1, -1, 0, 0, 0, 0
    # what we are in, from the outside: the id of the field, the kind of a list's elements (0: it
    # is a struct), and how many elements are to come, or how many fields there were
    fields, kinds = np.zeros(_DEPTH, np.int64), np.zeros(_DEPTH, np.int64)
    counts = np.zeros(_DEPTH, np.int64)
    depth, at = 0, 0
    while 0 <= at <= len(data):
        inside = fields[_FILE] == _ROW_GROUPS and depth > _FILE
        part = fields[_META]
        kind, element, count = kinds[depth], 0, 0
        if kind:
            if not counts[depth]:
                depth -= 1
                if inside and depth == _FILE:
                    end = at
                continue
            counts[depth] -= 1
        else:
            if at == len(data):
                return none
            byte = np.int64(data[at])
            at += 1
            if byte == _STOP:
                if depth == _FILE:
                    return group + 1, chunk + 1, begin, end, total, after
                if inside and depth == _GROUP and min(groups[group]) < 0:
                    return none
                lacking = counts[depth] != 3 or fields[depth] != 3
                if inside and depth == _ELEMENT and part == _ENCODING_STATS and lacking:
                    return none
                depth -= 1
                continue
            kind = byte & 15
            if byte < 16:  # an id that is not told by its distance
                return none
            fields[depth] += byte >> 4
            counts[depth] += 1
        field = fields[depth]
        if depth == _FILE and field == _ROW_GROUPS:
            begin = at
        if kind == _LIST:
            count, element, at = elements(data, at)
        if inside and not kinds[depth] and not is_usual(depth, field, part, kind, element):
            return none
        if kind in (_LIST, _STRUCT):
            if at < 0 or depth + 1 == _DEPTH:
                return none
            if depth == _FILE and field == _ROW_GROUPS and element != _STRUCT:
                return none
            if inside:
                group, chunk = entered(groups, group, chunks, chunk, depth, part, field, count)
                if group < 0:
                    return none
            depth += 1
            fields[depth], kinds[depth], counts[depth] = 0, element, count
            continue
        before = at
        value, at = scalar(data, at, kind)
        if depth == _FILE and field == _ROWS:
            total, after = before, at
        if inside:
            note(groups, group, chunks, chunk, depth, field, value)
    return none
