"""JSON Lines: the contract, and what is JSON's own."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats import detect, get
from pipeprof.formats.base import Fault, ReadOptions
from pipeprof.formats.decompress import Deflater
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, drive, encode, plan, read

JSONL = get("jsonl")


class TestJsonl(FormatContract):
    name = "jsonl"

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return bool(part.equals(whole.slice(0, part.num_rows)))

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """The format has no checksums, and a column may be absent from any line."""
        return False


def lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_a_column_that_a_line_lacks_is_null_there() -> None:
    found = read(JSONL, lines({"a": 1}, {"b": "x"}, {"a": 2, "b": None}))
    assert found.to_pydict() == {"a": [1, None, 2], "b": [None, "x", None]}


def test_a_column_that_begins_beyond_the_sample_is_not_read() -> None:
    data = lines(*({"a": i, "text": "x" * 1000} for i in range(1100)), {"a": 0, "late": 1})
    schema = plan(JSONL, Bytes(data)).schema
    assert schema is not None
    assert schema.names == ["a", "text"]
    assert read(JSONL, data).num_rows == 1101


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, None], pa.int64()),
        ([2**63, 1], pa.uint64()),
        ([1, 2.5], pa.float32()),
        ([True, None], pa.bool_()),
        (["2020-01-01 00:00:00"], pa.string()),
        ([None, None], pa.string()),
        ([[], None], pa.list_(pa.int64())),
        ([[1], [0.5]], pa.list_(pa.float32())),
    ],
)
def test_types_follow_from_the_values(values: list[Any], dtype: pa.DataType) -> None:
    found = read(JSONL, lines(*({"x": value} for value in values)))
    assert found.schema.field("x").type == dtype
    assert found["x"].to_pylist() == values


def test_objects_and_nested_lists_have_no_tensor() -> None:
    data = lines({"chat": [{"role": "user"}], "matrix": [[1]], "id": 7})
    made = plan(JSONL, Bytes(data))
    assert [field.name for field in made.left_out] == ["chat", "matrix"]
    assert read(JSONL, data).to_pydict() == {"id": [7]}
    chat = {field.name: field.type for field in made.left_out}
    assert read(JSONL, data, ["chat"], chat)["chat"].to_pylist() == [[{"role": "user"}]]
    with pytest.raises(SchemaMismatch, match=r"'chat' is .*no tensor; ask for other columns"):
        read(JSONL, data, ["chat"])


def test_a_column_of_changing_types_is_named_and_can_be_avoided() -> None:
    data = lines({"a": 1, "b": 1}, {"a": "x", "b": 2})
    with pytest.raises(SchemaMismatch, match=r"column 'a' is not of one type.*columns="):
        read(JSONL, data)
    assert read(JSONL, data, ["b"]).to_pydict() == {"b": [1, 2]}


def test_a_type_that_changes_behind_the_sample_says_where() -> None:
    filler = ({"a": i, "text": "x" * 1000} for i in range(1100))
    data = lines(*filler, {"a": "later", "text": ""})
    with pytest.raises(
        SchemaMismatch, match=r"line 1101, column 'a': a string where int64 was asked for"
    ):
        read(JSONL, data)


def test_a_number_that_does_not_fit_names_the_column() -> None:
    data = lines({"a": 1, "b": 1}, {"a": 300, "b": 1})
    with pytest.raises(SchemaMismatch, match=r"column 'a': .*int8.*300.*types=\{'a'"):
        read(JSONL, data, ["b", "a"], {"a": pa.int8()})


def test_text_is_cut_at_every_byte_of_its_lines() -> None:
    rows = [{"t": 'line\nend "quoted" {"a":1}', "n": i} for i in range(20)]
    data = lines(*rows)
    for split_bytes in range(1, 200, 7):
        found = read(JSONL, data, options=ReadOptions(split_bytes=split_bytes, block_bytes=32))
        assert found.to_pylist() == rows


def test_line_ends_of_windows_blank_lines_and_a_byte_order_mark() -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"a":2}'
    assert read(JSONL, data).to_pydict() == {"a": [1, 2]}
    assert detect("x", data, data).name == "jsonl"


def test_numbers_that_json_lacks() -> None:
    table = pa.table({"x": pa.array([0.1, float("inf"), float("nan")], pa.float32())})
    data = encode(JSONL, table)
    assert data == b'{"x":0.1}\n{"x":Infinity}\n{"x":NaN}\n'
    assert encode(JSONL, table.slice(2)) == b'{"x":null}\n'
    found = read(JSONL, data)["x"].to_pylist()
    assert found[:2] == table["x"].to_pylist()[:2]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b'{"a":1', "line 2 is not JSON"),
        (b'{"a":1}{"a":2}', "line 2 is not JSON"),
        (b"[1,2]", "line 2 holds an array, not an object"),
        (b'{"a":"\xff"}', "line 2 is not text in UTF-8"),
        (b'{"a":1,"b":"\\ud800"}', "line 2 is not text in UTF-8"),
        (b"\x00", "line 2 is not JSON"),
        (b"[" * 100_000, "line 2 is not JSON"),
    ],
)
def test_a_damaged_line_is_named_and_left_out(bad: bytes, says: str) -> None:
    data = b'{"a":1}\n' + bad + b'\n{"a":3}\n'
    with pytest.raises(CorruptData, match=says):
        read(JSONL, data)
    schema, faults = pa.schema([("a", pa.int64())]), list[Fault]()
    [split] = plan(JSONL, Bytes(data[:8])).splits
    whole = type(split)(0, len(data))
    decoding = JSONL.decode(len(data), whole, schema, ReadOptions())
    found = pa.Table.from_batches(drive(decoding, Bytes(data).read, faults.append))
    assert found.to_pydict() == {"a": [1, 3]}
    assert sum(fault.rows or 0 for fault in faults) == 1


def test_an_array_of_objects_is_explained() -> None:
    with pytest.raises(CorruptData, match=r"line 1 is not JSON .* Each row must be a line"):
        read(JSONL, b'[\n{"a":1},\n{"a":2}\n]\n')
    with pytest.raises(CorruptData, match="line 1 holds an array, not an object of columns"):
        read(JSONL, b'[{"a":1},{"a":2}]\n')


def test_gzip_is_one_split() -> None:
    data = gzip.compress(lines(*({"a": i} for i in range(9000))))
    assert len(plan(JSONL, Bytes(data), options=ReadOptions(split_bytes=100)).splits) == 1
    assert read(JSONL, data).num_rows == 9000
    with pytest.raises(FormatError, match="truncated"):
        read(JSONL, data[:-20])


def test_zstd_is_one_split_and_known_by_its_name() -> None:
    noise = [{"a": i, "text": str(i * 7919 % 104729) * 9} for i in range(9000)]
    deflater = Deflater("zstd")
    data = deflater.compress(lines(*noise), finish=True)
    assert len(data) > 4096
    assert detect("x.jsonl.zst", data[:4096], data[-4096:]).name == "jsonl"
    for block_bytes in (1000, 2**22):
        options = ReadOptions(split_bytes=100, block_bytes=block_bytes)
        assert read(JSONL, data, options=options).to_pylist() == noise
    with pytest.raises(CorruptData, match="zstd stream is truncated"):
        read(JSONL, data[:-20])
    with pytest.raises(CorruptData, match="zstd stream is damaged before byte"):
        read(JSONL, data[:-2] + b"??")
    assert read(JSONL, data + data).num_rows == 18_000


def test_content_that_is_certainly_json_lines() -> None:
    data = encode(JSONL, SMALL)
    for sent in (data, gzip.compress(data)):
        assert detect("x.bin", sent[:4096], sent[-4096:]).name == "jsonl"
    long = b'{"text":"' + b"x" * 9000 + b'"}\n'
    assert detect("x.jsonl", long[:4096], long[-4096:]).name == "jsonl"
    with pytest.raises(FormatError, match="is text, and neither"):
        detect("x.bin", long[:4096], long[-4096:])
