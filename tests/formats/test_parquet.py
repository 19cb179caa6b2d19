"""Parquet: the contract, and what is Parquet's own."""

from __future__ import annotations

import datetime
import decimal
import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import SchemaMismatch
from pipeprof.formats import get
from pipeprof.formats.base import FilePlan, ReadOptions
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, batches, drive, encode, plan, read

PARQUET = get("parquet")


class TestParquet(FormatContract):
    name = "parquet"
    step = 25  # a row group of the small file is some 350 bytes, and blocks play no part
    damaged_compressions = 1

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return False  # without its end there is no footer

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """Pages have checksums; the footer and the pages' headers do not, but they are checked
        against each other well enough for this file."""
        return True


def written(table: pa.Table, **options: Any) -> bytes:
    """By Arrow's own writer."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


TABLE = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"name {i % 10}" for i in range(1000)],
        "ids": [list(range(i % 4)) for i in range(1000)],
        "noise": pa.array([i * 0.7919 % 1 for i in range(1000)], pa.float32()),
    }
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 100},
        {"row_group_size": 333, "data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "compression": "gzip", "data_page_size": 512},
        {"write_page_index": True, "write_page_checksum": True, "row_group_size": 10},
        {"store_schema": False, "version": "1.0", "compression": "none"},
        {"column_encoding": {"id": "DELTA_BINARY_PACKED"}, "use_dictionary": ["name"]},
    ],
)
def test_files_of_other_writers(options: dict[str, Any]) -> None:
    data = written(TABLE, **options)
    for split_bytes in (0, 1, 5000):
        found = read(PARQUET, data, options=ReadOptions(split_bytes=split_bytes))
        assert found.equals(TABLE)


def test_stored_types_are_read_as_plain_ones() -> None:
    day, moment = datetime.date(1970, 1, 3), datetime.datetime(1970, 1, 1, 0, 0, 1)
    table = pa.table(
        {
            "category": pa.array(["a", "b", None, "a"]).dictionary_encode(),
            "large": pa.array(["x", None, "y", ""], pa.large_string()),
            "day": pa.array([day, None, day, day], pa.date32()),
            "moment": pa.array([moment] * 4, pa.timestamp("us")),
            "clock": pa.array([datetime.time(0, 0, 1)] * 4, pa.time32("ms")),
            "money": pa.array([decimal.Decimal("1.25")] * 4, pa.decimal128(9, 2)),
            "hash": pa.array([b"1234"] * 4, pa.binary(4)),
            "tokens": pa.array([[1], [], None, [2, 3]], pa.large_list(pa.int32())),
            "tags": pa.array([["a"], [], None, ["b"]], pa.list_(pa.large_string())),
            "pair": pa.array([[1, 2]] * 4, pa.list_(pa.int8(), 2)),
        }
    )
    found = read(PARQUET, written(table))
    assert found.to_pydict() == {
        "category": ["a", "b", None, "a"],
        "large": ["x", None, "y", ""],
        "day": [2, None, 2, 2],
        "moment": [1_000_000] * 4,
        "clock": [1000] * 4,
        "money": [1.25] * 4,
        "hash": [b"1234"] * 4,
        "tokens": [[1], [], None, [2, 3]],
        "tags": [["a"], [], None, ["b"]],
        "pair": [[1, 2]] * 4,
    }
    assert found.schema.field("tokens").type == pa.list_(pa.int32())
    assert found.schema.field("pair").type == pa.list_(pa.int8(), 2)


def test_a_tensor_column_of_arrow_is_a_fixed_list() -> None:
    tensors = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [2, 2]),
        pa.array([[1.0, 2.0, 3.0, 4.0]] * 3, pa.list_(pa.float32(), 4)),
    )
    found = read(PARQUET, written(pa.table({"image": tensors})))
    assert found.schema.field("image").type == pa.list_(pa.float32(), 4)
    assert found["image"].to_pylist() == [[1.0, 2.0, 3.0, 4.0]] * 3


def test_columns_without_a_tensor_are_never_dropped_in_silence() -> None:
    table = pa.table({"id": [1], "point": [{"x": 1}], "grid": [[[1]]], "none": [None]})
    data = written(table)
    assert read(PARQUET, data).column_names == ["id"]
    left_out = plan(PARQUET, Bytes(data)).left_out
    assert [column.name for column in left_out] == ["point", "grid", "none"]
    with pytest.raises(SchemaMismatch, match=r"'point' is struct<x: int64>.*columns=\['id'\]"):
        read(PARQUET, data, ["id", "point"])
    for name in ("point", "grid", "none"):
        with pytest.raises(SchemaMismatch, match=f"'{name}'"):
            read(PARQUET, data, ["id", name])
    assert read(PARQUET, data, ["id"]).to_pydict() == {"id": [1]}
    assert read(PARQUET, data, ["none"], {"none": pa.float32()}).to_pydict() == {"none": [None]}


def test_types_convert_and_loss_is_refused() -> None:
    data = written(pa.table({"n": [1, 300]}))
    assert read(PARQUET, data, types={"n": pa.float32()})["n"].to_pylist() == [1.0, 300.0]
    with pytest.raises(SchemaMismatch, match="'n' is int64 and cannot be read as int8"):
        read(PARQUET, data, types={"n": pa.int8()})
    with pytest.raises(SchemaMismatch, match="no column 'm'"):
        read(PARQUET, data, types={"m": pa.int8()})


def test_only_the_columns_asked_for_are_fetched() -> None:
    data = written(TABLE, row_group_size=250)
    source = Bytes(data)
    made = plan(PARQUET, source, ["ids", "id"], options=ReadOptions(split_bytes=0, gap_bytes=0))
    source.asked.clear()
    assert sum(batch.num_rows for batch in batches(PARQUET, source, made)) == 1000
    metadata = pq.read_metadata(io.BytesIO(data))
    footer = metadata.serialized_size + 8
    wanted = sum(
        metadata.row_group(group).column(index).total_compressed_size
        for group in range(4)
        for index in range(4)
        if metadata.schema.column(index).path.split(".")[0] in ("ids", "id")
    )
    assert sum(length for _, length in source.asked) == wanted + footer
    assert len(source.asked) == 1 + 2 * 4  # one range per column of a row group, and the footer
    assert source.asked == list(made.splits[0].ranges)


def test_what_lies_between_columns_is_read_over_up_to_the_gap_allowed() -> None:
    """Dictionaries lie within the columns; indexes and filters behind them are never read."""
    data = written(
        TABLE,
        row_group_size=250,
        write_page_index=True,
        bloom_filter_options={"id": {"ndv": 250}, "name": True},
    )
    metadata = pq.read_metadata(io.BytesIO(data))
    chunks = {
        (group, name): metadata.row_group(group).column(index)
        for group in range(4)
        for index, name in enumerate(TABLE.column_names)
    }
    assert chunks[0, "name"].has_dictionary_page
    assert chunks[0, "name"].bloom_filter_offset > max(c.data_page_offset for c in chunks.values())
    size = {place: chunk.total_compressed_size for place, chunk in chunks.items()}
    footer = metadata.serialized_size + 8
    # asked: the first, and the last of four; the two between them are a gap, of 250 rows each
    between = [size[group, "name"] + size[group, "ids"] for group in range(4)]
    wanted = sum(size[group, name] for group in range(4) for name in ("id", "noise"))

    def asked(gap_bytes: int) -> list[int]:
        source = Bytes(data)
        options = ReadOptions(split_bytes=0, gap_bytes=gap_bytes)
        made = plan(PARQUET, source, ["noise", "id"], options=options)
        source.asked.clear()
        [*found] = batches(PARQUET, source, made, options)
        assert pa.Table.from_batches(found).equals(TABLE.select(["noise", "id"]))
        return [length for _, length in source.asked]

    # the last column of a row group and the first of the next have nothing between them
    narrow = asked(min(between) - 1)
    assert (len(narrow), sum(narrow)) == (1 + 5, footer + wanted)
    wide = asked(max(between))
    assert (len(wide), sum(wide)) == (1 + 1, footer + wanted + sum(between))


def test_neighbouring_columns_are_one_range() -> None:
    made = plan(PARQUET, Bytes(written(TABLE, row_group_size=250)))
    assert len(made.splits) == 1
    assert len(made.splits[0].ranges) == 2
    assert made.splits[0].rows == 1000


def test_splits_are_runs_of_row_groups_of_about_the_size_asked() -> None:
    data = written(TABLE, row_group_size=100)
    source = Bytes(data)
    exact = ReadOptions(gap_bytes=0)
    made = plan(PARQUET, source, ["noise"], options=exact)
    whole = sum(length for _, length in made.splits[0].ranges[1:])
    options = ReadOptions(split_bytes=whole // 3)
    made = plan(PARQUET, source, ["noise"], options=options)
    assert [(split.start, split.end, split.rows) for split in made.splits] == [
        (0, 3, 300),
        (3, 6, 300),
        (6, 9, 300),
        (9, 10, 100),
    ]


def test_one_batch_per_row_group() -> None:
    source = Bytes(encode(PARQUET, SMALL, batch_rows=4))
    made = plan(PARQUET, source)
    assert [batch.num_rows for batch in batches(PARQUET, source, made)] == [4, 4, 1]


def test_a_name_with_a_dot_is_a_name() -> None:
    table = pa.table({"a": [1], "a.b": [2], "c": [3]})
    data = written(table)
    for names in (["a"], ["a.b"], ["a.b", "a"], ["c", "a"]):
        assert read(PARQUET, data, names).equals(table.select(names))


def test_a_footer_longer_than_the_first_look() -> None:
    wide = pa.table({f"a_rather_long_column_name_{i}": [i] for i in range(1000)})
    data = written(wide)
    source = Bytes(data)
    plan(PARQUET, source)
    assert len(source.asked) == 2
    assert source.asked[0][1] == 2**16
    assert read(PARQUET, data).equals(wide)


def test_a_file_whose_columns_differ_from_those_planned() -> None:
    schema = pa.schema([("b", pa.int64())])
    other = Bytes(written(pa.table({"c": [1], "b": pa.array([2], pa.int8())})))
    made = FilePlan(schema, plan(PARQUET, other, ["b"]).splits)
    assert [batch.to_pydict() for batch in batches(PARQUET, other, made)] == [{"b": [2]}]
    lacking = Bytes(written(pa.table({"c": [1]})))
    with pytest.raises(SchemaMismatch, match="no column 'b'"):
        list(batches(PARQUET, lacking, FilePlan(schema, plan(PARQUET, lacking).splits)))


def test_two_columns_of_one_name() -> None:
    data = written(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(SchemaMismatch, match="'a' is in the file twice"):
        read(PARQUET, data)


def test_a_footer_is_parsed_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"a": np.arange(100), "b": [[1]] * 100})
    source = Bytes(written(rows, row_group_size=10))
    made = plan(PARQUET, source, options=ReadOptions(split_bytes=1))
    assert len(made.splits) == 10
    monkeypatch.setattr("pipeprof.formats.parquet.footer.Footer", None)
    assert made.schema is not None
    for split in made.splits:
        [batch] = drive(
            PARQUET.decode(len(source.data), split, made.schema, ReadOptions()), source.read
        )
        assert batch.num_rows == 10
