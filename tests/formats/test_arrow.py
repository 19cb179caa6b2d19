"""Arrow IPC: the contract, and what is Arrow's own."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pytest

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats import detect, get
from pipeprof.formats.base import SMALLEST, ReadOptions
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, batches, encode, plan, read

ARROW = get("arrow")


class TestArrow(FormatContract):
    name = "arrow"
    step = 25  # blocks play no part in a file

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return False  # without its end there is no footer

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        """The format has no checksums."""
        return False


TABLE = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"name {i % 10}" for i in range(1000)],
        "ids": [list(range(i % 4)) for i in range(1000)],
        "noise": pa.array([i * 0.7919 % 1 for i in range(1000)], pa.float32()),
    }
)
ENCODED = TABLE.set_column(1, "name", TABLE["name"].dictionary_encode())


def file(table: pa.Table, rows: int = 100, **options: Any) -> bytes:
    sink = io.BytesIO()
    writing = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_file(sink, table.schema, options=writing) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def stream(table: pa.Table, rows: int = 100, **options: Any) -> bytes:
    sink = io.BytesIO()
    writing = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(sink, table.schema, options=writing) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def feather(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.feather.write_feather(table, sink, chunksize=100)
    return sink.getvalue()


WRITTEN = {
    "file": file(TABLE),
    "compressed file": file(TABLE, compression="zstd"),
    "dictionary": file(ENCODED),
    "one batch with a dictionary": file(ENCODED, rows=1000),
    "feather": feather(TABLE),
    "feather with a dictionary": feather(ENCODED),
    "stream": stream(TABLE),
    "compressed stream": stream(TABLE, compression="lz4"),
    "stream with a dictionary": stream(ENCODED),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_files_of_other_writers(written: str) -> None:
    data = WRITTEN[written]
    for split_bytes, block_bytes in ((0, 2**22), (1, 17), (5000, 1000)):
        options = ReadOptions(split_bytes=split_bytes, block_bytes=block_bytes)
        assert read(ARROW, data, options=options).equals(TABLE)
        some = read(ARROW, data, ["noise", "name"], options=options)
        assert some.equals(TABLE.select(["noise", "name"]))


@pytest.mark.parametrize("written", WRITTEN)
def test_the_content_tells(written: str) -> None:
    data = WRITTEN[written]
    assert detect("x.bin", data[:4096], data[-4096:]).name == "arrow"


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}])
def test_only_the_columns_that_are_asked_for_are_read(options: dict[str, Any]) -> None:
    wide = pa.table({f"c{i}": pa.array(range(i, i + 8000), pa.int64()) for i in range(50)})
    data = file(wide, rows=4000, **options)
    source, reading = Bytes(data), ReadOptions(split_bytes=0, gap_bytes=0)
    made = plan(ARROW, source, ["c7"], options=reading)
    source.asked.clear()
    found = pa.Table.from_batches(list(batches(ARROW, source, made, reading)))
    assert found.equals(wide.select(["c7"]))
    assert sum(length for _, length in source.asked) < len(data) / 3


def test_all_columns_are_one_request() -> None:
    source = Bytes(file(TABLE))
    made = plan(ARROW, source)
    [split] = made.splits
    assert len(split.ranges) == 2  # the footer, and all batches
    assert split.end == 10


def test_a_file_without_columns_or_batches() -> None:
    assert plan(ARROW, Bytes(file(TABLE.slice(0, 0)))).splits == ()
    assert read(ARROW, stream(TABLE.slice(0, 0))).equals(TABLE.slice(0, 0))
    with pytest.raises(SchemaMismatch, match="no column 'id'"):
        plan(ARROW, Bytes(file(pa.table({}))), ["id"])


def test_columns_without_a_tensor_are_left_out() -> None:
    nested = TABLE.append_column("pairs", pa.array([[[1], [2, 3]]] * 1000))
    for data in (file(nested), stream(nested)):
        made = plan(ARROW, Bytes(data))
        assert [field.name for field in made.left_out] == ["pairs"]
        assert read(ARROW, data).equals(TABLE)


def test_a_damaged_batch_of_a_file_is_left_out_alone() -> None:
    data = bytearray(file(TABLE, compression="zstd"))
    made = plan(ARROW, Bytes(bytes(data)), options=ReadOptions(split_bytes=1))
    offset, length = made.splits[3].ranges[1]
    data[offset + 200 : offset + length] = bytes(length - 200)
    source, faults = Bytes(bytes(data)), list[Any]()
    from tests.contracts.format_samples import drive

    rows = 0
    for split in made.splits:
        assert made.schema is not None
        for batch in drive(
            ARROW.decode(len(data), split, made.schema, ReadOptions()), source.read, faults.append
        ):
            rows += batch.num_rows
    assert rows == 900
    assert "record batch 3 is damaged" in str(faults[0].error)


def test_a_stream_that_is_cut_says_where() -> None:
    data = stream(TABLE)
    assert read(ARROW, data[:-8]).equals(TABLE)  # its end mark may be missing
    with pytest.raises(CorruptData, match=r"within the message at byte \d+: truncated"):
        read(ARROW, data[:-9])
    with pytest.raises(CorruptData, match="within the message at byte 0"):
        read(ARROW, data[:100])
    with pytest.raises(CorruptData, match="other bytes follow the end of the stream"):
        read(ARROW, data + data)


def test_a_length_that_no_message_has() -> None:
    data = bytearray(stream(TABLE))
    data[4:8] = (2**31 - 8).to_bytes(4, "little")
    with pytest.raises(CorruptData, match="damaged"):
        read(ARROW, bytes(data))


def test_a_footer_that_lies() -> None:
    data = file(TABLE)
    with pytest.raises(CorruptData, match="does not end with ARROW1: truncated"):
        read(ARROW, data[:-1])
    with pytest.raises(CorruptData, match=r"more than the \d+ bytes of the file"):
        read(ARROW, data[:-10] + (2**30).to_bytes(4, "little") + data[-6:])
    assert encode(ARROW, SMALL)[:6] == b"ARROW1"


@pytest.mark.parametrize("written", [name for name in WRITTEN if "stream" not in name])
def test_the_rows_of_each_batch_are_counted_for_the_smallest_splits(written: str) -> None:
    source = Bytes(WRITTEN[written])
    made = plan(ARROW, source, options=ReadOptions(split_bytes=SMALLEST, gap_bytes=0))
    in_each = 1000 if written.startswith("one batch") else 100
    assert [split.rows for split in made.splits] == [in_each] * (1000 // in_each)
    assert [split.rows for split in plan(ARROW, source).splits] == [None]


def test_to_count_rows_their_heads_alone_are_read() -> None:
    wide = pa.table({f"c{i}": pa.array(range(40_000), pa.int64()) for i in range(3)})
    source = Bytes(file(wide, rows=10_000))
    plan(ARROW, source, options=ReadOptions(split_bytes=SMALLEST, gap_bytes=0))
    heads = [length for _, length in source.asked if length < 1000]
    assert len(heads) >= 4
    assert sum(length for _, length in source.asked) < 70_000, "the end of the file, and the heads"


def test_a_damaged_head_is_named_where_rows_are_counted() -> None:
    data = bytearray(file(TABLE))
    source = Bytes(bytes(data))
    [first] = plan(ARROW, source).splits[0].ranges[-1:]
    data[first[0] + 8 : first[0] + 80] = b"\xff" * 72
    with pytest.raises(CorruptData, match="the head of record batch 0"):
        plan(ARROW, Bytes(bytes(data)), options=ReadOptions(split_bytes=SMALLEST))
