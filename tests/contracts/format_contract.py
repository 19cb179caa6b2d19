"""What every file format must do. A format's test class inherits `FormatContract`, names the
format, and says what it promises of damaged bytes; everything else is the same for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch, UsageError
from pipeprof.formats import detect, get
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
"""What all three formats tell without being told, and tell alike."""

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
    """An object in memory that knows what was asked of it."""

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
    """The whole object, through its plan."""
    source = Bytes(data)
    made = plan(fmt, source, columns, types, options)
    schema = made.schema if made.schema is not None else pa.schema([])
    return pa.Table.from_batches(list(batches(fmt, source, made, options)), schema)


def meaning(table: pa.Table) -> dict[str, list[Any]]:
    """What the tensors of a table hold: text as bytes, and a null as what takes its place."""
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


class FormatContract:
    """Inherit, set ``name``, and define what the two methods say that are not tests."""

    name: str
    step = 1
    """Between the sizes of splits and blocks to try."""
    damaged_compressions = 2
    """How many of the format's compressions to damage byte by byte."""

    @property
    def fmt(self) -> Format:
        return get(self.name)

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        """Whether reading ``part`` without complaint is right, when only the first ``kept`` bytes
        of ``data`` were left of ``whole``."""
        raise NotImplementedError

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """Whether a flipped bit in this byte must be an error, or change nothing."""
        raise NotImplementedError

    def small_types(self) -> dict[str, pa.DataType]:
        return types_of(SMALL.schema)

    def test_every_type_comes_back(self) -> None:
        data = encode(self.fmt, EVERY_TYPE)
        found = read(self.fmt, data, EVERY_TYPE.column_names, types_of(EVERY_TYPE.schema))
        assert found.schema.equals(EVERY_TYPE.schema)
        assert meaning(found) == meaning(EVERY_TYPE)

    def test_the_formats_infer_the_same(self) -> None:
        found = read(self.fmt, encode(self.fmt, INFERRED), INFERRED.column_names)
        assert meaning(found) == meaning(INFERRED)
        text = found.schema.field("text").type
        others = found.schema.remove(found.schema.get_field_index("text"))
        assert text in (pa.string(), pa.binary())
        assert others.equals(INFERRED.schema.remove(INFERRED.schema.get_field_index("text")))

    def test_every_split_size_gives_each_row_once_in_order(self) -> None:
        data = encode(self.fmt, SMALL, batch_rows=2)
        for split_bytes in range(0, len(data) + self.step + 1, self.step):
            options = ReadOptions(split_bytes=split_bytes, block_bytes=64)
            found = read(self.fmt, data, SMALL.column_names, self.small_types(), options)
            assert found.equals(SMALL), f"split_bytes={split_bytes}"

    def test_every_block_size_gives_the_same_rows(self) -> None:
        for compression in self.fmt.compressions:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for block_bytes in range(1, len(data) + self.step + 1, self.step):
                options = ReadOptions(split_bytes=100, block_bytes=block_bytes)
                found = read(self.fmt, data, SMALL.column_names, self.small_types(), options)
                assert found.equals(SMALL), f"{compression}, block_bytes={block_bytes}"

    def test_splits_say_their_rows_or_nothing(self) -> None:
        source = Bytes(encode(self.fmt, SMALL, batch_rows=2))
        made = plan(self.fmt, source, options=ReadOptions(split_bytes=50))
        for split in made.splits:
            alone = FilePlan(made.schema, (split,))
            rows = sum(batch.num_rows for batch in batches(self.fmt, source, alone))
            assert split.rows in (None, rows)

    def test_a_table_without_rows(self) -> None:
        empty = SMALL.slice(0, 0)
        for compression in self.fmt.compressions:
            assert read(self.fmt, encode(self.fmt, empty, compression)).num_rows == 0

    def test_one_row(self) -> None:
        data = encode(self.fmt, SMALL.slice(4, 1))
        found = read(self.fmt, data, SMALL.column_names, self.small_types())
        assert found.equals(SMALL.slice(4, 1))

    def test_two_thousand_columns(self) -> None:
        wide = pa.table({f"column_{i:04}": pa.array([i, -i]) for i in range(2000)})
        found = read(self.fmt, encode(self.fmt, wide))
        assert found.equals(wide)

    def test_a_cell_of_5_mb(self) -> None:
        large = pa.table({"id": [1, 2], "blob": ["x,\n" * 1_700_000, "small"]})
        options = ReadOptions(block_bytes=2**16)
        found = read(
            self.fmt, encode(self.fmt, large), ["id", "blob"], types_of(large.schema), options
        )
        assert found.equals(large)

    def test_columns_in_the_order_asked_for(self) -> None:
        data = encode(self.fmt, SMALL, batch_rows=2)
        found = read(self.fmt, data, ["ids", "id"], options=ReadOptions(split_bytes=40))
        assert found.equals(SMALL.select(["ids", "id"]))

    def test_an_unknown_column_is_named_with_a_close_one(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match=r"no column 'wrod'; did you mean 'word'\?.*ids"):
            read(self.fmt, data, ["id", "wrod"])

    def test_no_column_and_the_same_twice_are_refused(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match="no columns"):
            read(self.fmt, data, [])
        with pytest.raises(SchemaMismatch, match="'id' is asked for twice"):
            read(self.fmt, data, ["id", "id"])

    def test_a_value_of_another_type_names_the_column(self) -> None:
        data = encode(self.fmt, SMALL)
        with pytest.raises(SchemaMismatch, match="'word'"):
            read(self.fmt, data, ["id", "word"], {"word": pa.int64()})

    def test_cut_short_at_every_byte(self) -> None:
        for compression in self.fmt.compressions[: self.damaged_compressions]:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for kept in range(1, len(data)):
                try:
                    part = read(self.fmt, data[:kept], SMALL.column_names, self.small_types())
                except FormatError:
                    continue
                assert compression in ("none", "snappy"), f"{compression}, {kept} bytes"
                assert self.rows_survive(SMALL, part, kept, data), f"{kept} bytes"

    def test_one_flipped_bit_in_every_byte(self) -> None:
        for compression in self.fmt.compressions[: self.damaged_compressions]:
            data = encode(self.fmt, SMALL, compression, batch_rows=3)
            for position in range(len(data)):
                damaged = bytearray(data)
                damaged[position] ^= 1 << (position % 8)
                try:
                    found = read(self.fmt, bytes(damaged), SMALL.column_names, self.small_types())
                except FormatError:
                    continue
                seen = self.flip_is_seen(data, position) or compression in ("gzip", "zlib")
                assert not seen or found.equals(SMALL), f"{compression}, byte {position}"

    def test_an_object_shorter_than_listed_is_an_error(self) -> None:
        data = encode(self.fmt, SMALL)
        made = plan(self.fmt, Bytes(data))
        shrunk = Bytes(data[:-9])
        assert made.schema is not None
        for split in made.splits[-1:]:
            with pytest.raises(CorruptData, match="shorter than when it was listed"):
                list(drive(self.fmt.decode(len(data), split, made.schema, WHOLE), shrunk.read))

    def test_every_compression(self) -> None:
        table = pa.table({"n": range(5000), "text": [f"row {i % 7}" for i in range(5000)]})
        for compression in self.fmt.compressions:
            data = encode(self.fmt, table, compression, batch_rows=1000)
            options = ReadOptions(split_bytes=4096, block_bytes=1024)
            found = read(self.fmt, data, ["n", "text"], types_of(table.schema), options)
            assert found.equals(table), compression

    def test_an_unknown_compression_is_named(self) -> None:
        with pytest.raises(UsageError, match=f"'rar'.*{self.fmt.compressions[1]}"):
            self.fmt.encoder(SMALL.schema, "rar")

    def test_equal_rows_make_equal_bytes(self) -> None:
        for compression in self.fmt.compressions:
            first, second = (encode(self.fmt, EVERY_TYPE, compression) for _ in range(2))
            assert first == second

    def test_a_batch_of_another_schema_is_refused(self) -> None:
        encoder = self.fmt.encoder(SMALL.schema)
        with pytest.raises(SchemaMismatch, match=r"id: int64.*was given.*id: string"):
            encoder.write(pa.record_batch({"id": ["x"]}))

    def test_content_tells_the_format_under_any_name_it_allows(self) -> None:
        for compression in self.fmt.compressions:
            data = encode(self.fmt, SMALL, compression)
            for suffix in self.fmt.suffixes:
                assert detect(f"part-0{suffix}", data[:4096], data[-4096:]).name == self.name

    @settings(
        max_examples=40, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(tables(), st.integers(1, 300), st.integers(1, 300), st.data())
    def test_any_table_comes_back(
        self, table: pa.Table, split_bytes: int, block_bytes: int, data: st.DataObject
    ) -> None:
        compression = data.draw(st.sampled_from(self.fmt.compressions))
        encoded = encode(self.fmt, table, compression, batch_rows=3)
        options = ReadOptions(split_bytes, block_bytes)
        found = read(self.fmt, encoded, table.column_names, types_of(table.schema), options)
        if table.num_rows:
            assert found.schema.equals(table.schema)
            assert meaning(found) == meaning(table)
        else:
            assert found.num_rows == 0
