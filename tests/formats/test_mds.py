"""MDS: the contract, and what is its own."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pipeprof
from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats import detect, get
from pipeprof.formats.base import Fault, ReadOptions
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, drive, encode, plan, read, types_of

MDS = get("mds")


class TestMds(FormatContract):
    name = "mds"
    step = 7
    damage_step = 3

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return False  # the last offset is the size of the shard

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """Nothing has a checksum."""
        return False


def shard(
    columns: Sequence[tuple[str, str, int | None]], samples: Sequence[Sequence[bytes]]
) -> bytes:
    """As `MDSWriter` lays it out: names, encodings and sizes, and the bytes of each value."""
    names, encodings, sizes = zip(*columns, strict=True)
    config = json.dumps(
        {
            "column_encodings": encodings,
            "column_names": names,
            "column_sizes": sizes,
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": 67108864,
            "version": 2,
        }
    ).encode()
    rows = [
        np.array(
            [len(v) for v, size in zip(row, sizes, strict=True) if size is None], "<u4"
        ).tobytes()
        + b"".join(row)
        for row in samples
    ]
    first = 4 * (2 + len(rows)) + len(config)
    offsets = np.cumsum([first, *map(len, rows)])
    return np.array([len(rows), *offsets], "<u4").tobytes() + config + b"".join(rows)


def numbers(kind: str, *values: Any) -> bytes:
    return np.array(values, kind).tobytes()


def test_each_encoding_of_streaming() -> None:
    columns: list[tuple[str, str, int | None]] = [
        ("id", "int", 8), ("small", "uint8", 1), ("price", "float64", 8), ("text", "str", None),
        ("photo", "jpeg:90", None), ("meta", "json", None), ("big", "str_int", None),
        ("box", "ndarray:float32:2,2", 16), ("tokens", "ndarray:uint16", None),
        ("any", "ndarray", None), ("thing", "pkl", None),
    ]  # fmt: skip
    tokens = bytes([1 << 2 | 0, 3]) + numbers("<u2", 7, 8, 9)
    matrix = bytes([2 << 2 | 1]) + numbers("<u2", 1, 2) + numbers("<u2", 5, 6)
    row = [
        numbers("<i8", -5), b"\xff", numbers("<f8", 0.25), "häß".encode(), b"\xff\xd8\xff",
        b'{"a":1}', b"123", numbers("<f4", 1, 2, 3, 4), tokens, b"\x08raw", pickle.dumps([1]),
    ]  # fmt: skip
    found = read(MDS, shard(columns, [row, [*row[:8], matrix, *row[9:]]]))
    assert found.slice(0, 1).to_pylist() == [
        {
            "id": -5,
            "small": 255,
            "price": 0.25,
            "text": "häß",
            "photo": b"\xff\xd8\xff",
            "meta": '{"a":1}',
            "big": 123,
            "box": [1, 2, 3, 4],
            "tokens": [7, 8, 9],
            "any": b"\x08raw",
            "thing": pickle.dumps([1]),
        }
    ]
    assert found["tokens"].to_pylist()[1] == [5, 6]
    assert found.schema.field("box").type == pa.list_(pa.float32(), 4)


def test_a_shard_is_known_by_its_content_whatever_its_size() -> None:
    row = [numbers("<i8", 1)]
    for rows in (1, 3000):
        data = shard([("id", "int", 8)], [row] * rows)
        assert detect("x.bin", data[:4096], data[-4096:]).name == "mds"


def test_only_the_samples_of_a_split_are_read() -> None:
    table = pa.table({"blob": [bytes(1000)] * 100})
    source = Bytes(encode(MDS, table))
    made = plan(MDS, source, options=ReadOptions(split_bytes=10_000))
    assert [split.rows for split in made.splits] == [10] * 9 + [10]
    source.asked.clear()
    assert made.schema is not None
    [batch] = drive(
        MDS.decode(len(source.data), made.splits[4], made.schema, ReadOptions()), source.read
    )
    assert batch.num_rows == 10
    assert sum(length for _, length in source.asked) < 10 * 1004 + 400


def test_a_damaged_sample_alone_is_left_out() -> None:
    data = bytearray(encode(MDS, SMALL))
    made = plan(MDS, Bytes(bytes(data)))
    [split] = made.splits
    offsets = np.frombuffer(data, "<u4", len(SMALL) + 1, 4)
    data[int(offsets[4])] ^= 1  # the size of a word
    faults: list[Fault] = []
    assert made.schema is not None
    found = pa.Table.from_batches(
        drive(MDS.decode(len(data), split, made.schema, ReadOptions()),
              Bytes(bytes(data)).read, faults.append)
    )  # fmt: skip
    assert found["id"].to_pylist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert [fault.rows for fault in faults] == [0, 1]
    assert "sizes of a sample do not fit" in str(faults[0].error)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (b"{" + b"x" * 99, "description of its columns is damaged"),
        (b'{"column_names": ["a"], "column_encodings": ["int"], "column_sizes": [4]}',
         "column 'a' is int and has the size 4"),
        (b'{"column_names": ["a", "b"], "column_encodings": ["int"], "column_sizes": [8]}',
         "description of its columns is damaged"),
    ],
)  # fmt: skip
def test_a_damaged_description(config: bytes, says: str) -> None:
    first = 12 + len(config)
    data = np.array([1, first, first + 8], "<u4").tobytes() + config + bytes(8)
    with pytest.raises(CorruptData, match=says):
        read(MDS, data)


def test_offsets_that_run_backwards_and_a_size_that_does_not_fit() -> None:
    data = bytearray(encode(MDS, SMALL))
    with pytest.raises(CorruptData, match="truncated, or damaged"):
        read(MDS, bytes(data) + b"more")
    data[8:12], data[12:16] = data[12:16], data[8:12]
    with pytest.raises(CorruptData, match="sample 1 ends before it begins"):
        read(MDS, bytes(data))


def test_the_index_beside_the_shards_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "shard.00000.mds").write_bytes(encode(MDS, SMALL))
    (tmp_path / "index.json").write_text('{"version": 2, "shards": []}')
    dataset = pipeprof.open_dataset(str(tmp_path), batch_size=9)
    [batch] = dataset
    assert batch["id"].tolist() == list(range(9))
    assert (dataset.source.format, dataset.source.objects) == ("mds", 1)


def test_what_it_cannot_hold() -> None:
    with pytest.raises(SchemaMismatch, match=r"'when' is timestamp.*MDS cannot hold"):
        MDS.encoder(pa.schema([("when", pa.timestamp("s"))]))


def test_lists_of_text_are_json() -> None:
    table = pa.table({"words": pa.array([["a", "b"], []], pa.list_(pa.string()))})
    data = encode(MDS, table)
    assert read(MDS, data)["words"].to_pylist() == ['["a","b"]', "[]"]
    assert read(MDS, data, types=types_of(table.schema)).equals(table)
