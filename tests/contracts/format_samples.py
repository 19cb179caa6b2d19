"""Tables that every format must hold, and functions that write, plan and read them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pipeprof.formats.base import (
    Answer,
    Buffer,
    Decoding,
    Fault,
    FilePlan,
    Format,
    ReadOptions,
    ReadRequest,
    drive_plan,
    raise_fault,
)

WHOLE = ReadOptions()
MAX = 2**63 - 1

EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True, False, None, True]),
        "int8": pa.array([-128, 127, None, 0], pa.int8()),
        "int16": pa.array([-(2**15), 2**15 - 1, None, 0], pa.int16()),
        "int32": pa.array([-(2**31), 2**31 - 1, None, 0], pa.int32()),
        "int64": pa.array([-MAX - 1, MAX, None, 0], pa.int64()),
        "uint8": pa.array([255, 0, None, 1], pa.uint8()),
        "uint16": pa.array([2**16 - 1, 0, None, 1], pa.uint16()),
        "uint32": pa.array([2**32 - 1, 0, None, 1], pa.uint32()),
        "uint64": pa.array([MAX, 0, None, 1], pa.uint64()),
        "float16": pa.array([0.5, -65504.0, None, math.inf], pa.float16()),
        "float32": pa.array([0.1, -3.4028235e38, None, math.nan], pa.float32()),
        "tiny": pa.array([1e-45, -0.0, math.inf, -math.inf], pa.float32()),
        "string": pa.array(["häß, 漢字 🦜", "", None, 'a "quoted"\r\nline'], pa.string()),
        "binary": pa.array([b"\x00\xff,\n", b"", None, b'"'], pa.binary()),
        "ints": pa.array([[1, -MAX - 1, MAX], [], None, [7]], pa.list_(pa.int64())),
        "floats": pa.array([[0.1, math.nan], [], None, [-1e30]], pa.list_(pa.float32())),
        "bools": pa.array([[True], [False, True], None, []], pa.list_(pa.bool_())),
        "strings": pa.array([["a,]", '"'], [""], None, ["é\n"]], pa.list_(pa.string())),
        "blobs": pa.array([[b"\x00", b"x"], [b""], None, []], pa.list_(pa.binary())),
        "pairs": pa.array([[1, 2], [-3, 4], None, [5, 6]], pa.list_(pa.int64(), 2)),
        "vectors": pa.array([[0.5] * 3, [1.5] * 3, [2.5] * 3, None], pa.list_(pa.float32(), 3)),
    }
)

INFERRED = pa.table(
    {
        "count": pa.array([1, -2, None, MAX], pa.int64()),
        "price": pa.array([0.1, None, -1e30, 2.0], pa.float32()),
        "text": pa.array(["a", "", "c,d", "漢字"], pa.string()),
        "ids": pa.array([[1, 2], [], [3], [4, 5, 6]], pa.list_(pa.int64())),
        "scores": pa.array([[0.5, 0.25], [], [1.5], [-2.0]], pa.list_(pa.float32())),
    }
)
"""What all formats infer without being given types, and infer alike."""

SMALL = pa.table(
    {
        "id": pa.array(range(9), pa.int64()),
        "word": pa.array([f"w{'x' * (i % 4)}" for i in range(9)], pa.string()),
        "ids": pa.array([list(range(i % 3 + 1)) for i in range(9)], pa.list_(pa.int64())),
    }
)


def drive(
    decoding: Decoding,
    read: Callable[[int, int], Buffer],
    on_fault: Callable[[Fault], object] = raise_fault,
) -> Iterator[pa.RecordBatch]:
    """Answer each request with ``read(offset, length)``; yield the record batches."""
    answer: Answer = None
    while True:
        try:
            item = decoding.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(item, ReadRequest):
            answer = [read(offset, length) for offset, length in item.ranges]
        elif isinstance(item, Fault):
            on_fault(item)
        else:
            yield item


@dataclass
class Bytes:
    """An object in memory that records which ranges are read."""

    data: bytes
    asked: list[tuple[int, int]] = field(default_factory=list)

    def read(self, offset: int, length: int) -> Buffer:
        self.asked.append((offset, length))
        return memoryview(self.data)[offset : offset + length]


def types_of(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {column.name: column.type for column in schema}


def encode(
    fmt: Format, table: pa.Table, compression: str | None = None, batch_rows: int = 4
) -> bytes:
    encoder = fmt.encoder(table.schema, compression)
    pieces = [encoder.write(batch) for batch in table.to_batches(max_chunksize=batch_rows)]
    return b"".join((*pieces, encoder.finish()))


def plan(
    fmt: Format,
    source: Bytes,
    columns: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    options: ReadOptions = WHOLE,
) -> FilePlan:
    planning = fmt.plan(len(source.data), columns, types or {}, options)
    return drive_plan(planning, source.read)


def batches(
    fmt: Format, source: Bytes, made: FilePlan, options: ReadOptions = WHOLE
) -> Iterator[pa.RecordBatch]:
    for split in made.splits:
        assert made.schema is not None
        decoding = fmt.decode(len(source.data), split, made.schema, options)
        for batch in drive(decoding, source.read):
            assert batch.schema.equals(made.schema)
            batch.validate(full=True)
            yield batch


def read(
    fmt: Format,
    data: bytes,
    columns: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    options: ReadOptions = WHOLE,
) -> pa.Table:
    """Plan the object, and read all of it."""
    source = Bytes(data)
    made = plan(fmt, source, columns, types, options)
    schema = made.schema if made.schema is not None else pa.schema([])
    return pa.Table.from_batches(list(batches(fmt, source, made, options)), schema)


def meaning(table: pa.Table) -> dict[str, list[Any]]:
    """Return the values of a table's tensors: text as bytes, and nulls as their replacement."""
    return {
        name: [_value(cell, column.type) for cell in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _value(cell: Any, dtype: pa.DataType) -> Any:
    if pa.types.is_fixed_size_list(dtype):
        return [_value(item, dtype.value_type) for item in cell or [None] * dtype.list_size]
    if pa.types.is_list(dtype):
        return [_value(item, dtype.value_type) for item in cell or []]
    if pa.types.is_floating(dtype):
        return "nan" if cell is None or math.isnan(cell) else cell
    if isinstance(cell, str):
        return cell.encode()
    return cell or (b"" if pa.types.is_string(dtype) or pa.types.is_binary(dtype) else 0)


def _columns(dtype: pa.DataType, values: st.SearchStrategy[Any]) -> dict[str, Any]:
    return {
        "scalar": (dtype, st.none() | values),
        "list": (pa.list_(dtype), st.none() | st.lists(values, max_size=4)),
        "fixed": (pa.list_(dtype, 2), st.none() | st.lists(values, min_size=2, max_size=2)),
    }


_KINDS = [
    kind
    for dtype, values in (
        (pa.int64(), st.integers(-MAX - 1, MAX)),
        (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
        (pa.bool_(), st.booleans()),
        (pa.float32(), st.floats(width=32)),
        (pa.string(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
        (pa.binary(), st.binary(max_size=9)),
    )
    for kind in _columns(dtype, values).values()
]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=5))
    rows = draw(st.integers(0, 7))
    columns = [
        pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)), dtype)
        for dtype, cells in kinds
    ]
    return pa.table(columns, names=[f"c{i}" for i in range(len(columns))])
