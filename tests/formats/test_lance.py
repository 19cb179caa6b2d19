"""Lance: the contract, tables of pylance, and what is its own."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest

import pipeprof
from pipeprof.errors import CorruptData, FormatError, UsageError
from pipeprof.formats import get
from pipeprof.formats.base import ReadOptions
from pipeprof.formats.lance.layout import parse_footer
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import SMALL, Bytes, encode, plan, read

LANCE = get("lance")
RANDOM = Random(0)
ROWS = pa.table({"id": range(1000), "blob": [RANDOM.randbytes(50) for _ in range(1000)]})


class TestLance(FormatContract):
    name = "lance"
    step = 211
    damage_step = 23

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        return False  # the footer comes last

    def test_one_flipped_bit_in_every_byte(self) -> None:
        """What we read of a file is refused, or a plan within the file. Its pages are pylance's,
        which ends the process for some bits."""
        data, refused = encode(self.fmt, SMALL), 0
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1 << (position % 8)
            try:
                made = plan(self.fmt, Bytes(bytes(damaged)))
            except FormatError:
                refused += 1
                continue
            ranges = [each for split in made.splits for each in split.ranges]
            assert all(0 <= sum(each) <= len(data) for each in ranges), f"byte {position}"
        assert refused > 50


def written(path: Path, rows: pa.Table, **options: Any) -> bytes:
    """Return the bytes of a file that pylance writes."""
    from lance.file import LanceFileWriter

    with LanceFileWriter(str(path), rows.schema, **options) as writer:
        for batch in rows.to_batches(max_chunksize=20_000):
            writer.write_batch(batch)
    return path.read_bytes()


def ids(url: Path) -> list[int]:
    """Return the column `id` of a data set, in its order."""
    return [int(each) for batch in pipeprof.open_dataset(str(url)) for each in batch["id"]]


def test_only_pages_of_asked_columns_are_read() -> None:
    data = encode(LANCE, ROWS, batch_rows=1000)
    assert read(LANCE, data) == ROWS
    made = plan(LANCE, Bytes(data), ["id"])
    nbytes = sum(length for split in made.splits for _, length in split.ranges)
    assert nbytes < len(data) / 2


def test_a_split_reads_the_pages_of_its_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": range(200_000), "half": [i / 2 for i in range(200_000)]})
    data = written(tmp_path / "rows.lance", rows, data_cache_bytes=100_000)
    options = ReadOptions(split_bytes=400_000, gap_bytes=0)
    made = plan(LANCE, Bytes(data), options=options)
    assert len(made.splits) > 3
    assert sum(split.rows or 0 for split in made.splits) == 200_000
    described_at = made.splits[0].ranges[0][0]
    ranges = [each for split in made.splits for each in split.ranges if each[0] < described_at]
    assert 0.9 * described_at < sum(length for _, length in ranges) < 1.5 * described_at
    assert read(LANCE, data, options=options) == rows


def test_lists_of_version_2_0_are_read_with_all_columns(tmp_path: Path) -> None:
    """There a list is two columns, of which only the library knows."""
    rows = pa.table({"id": range(50), "ids": [list(range(i % 4)) for i in range(50)]})
    data = written(tmp_path / "old.lance", rows, version="2.0")
    assert read(LANCE, data, ["ids"]) == rows.select(["ids"])


def test_what_has_no_tensor_is_left_out(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "meta": [{"a": 1, "b": ["x"]}, {"a": 2, "b": []}],
            "day": pa.array([1, 2], pa.date32()),
            "price": pa.array([1, 2], pa.decimal128(5, 2)),
        }
    )
    made = plan(LANCE, Bytes(written(tmp_path / "rows.lance", rows)))
    assert [field.name for field in made.left_out] == ["meta"]
    assert made.left_out[0].type == rows.schema.field("meta").type
    assert made.schema is not None
    assert made.schema.field("day").type == pa.int64()
    assert made.schema.field("price").type == pa.float64()


def test_a_table_is_its_newest_version(tmp_path: Path) -> None:
    url = tmp_path / "table.lance"
    lance.write_dataset(pa.table({"id": [1, 2]}), url)
    lance.write_dataset(pa.table({"id": [3, 4, 5]}), url, mode="overwrite")
    lance.write_dataset(pa.table({"id": [6]}), url, mode="append")
    assert ids(url) == [3, 4, 5, 6]
    assert len(list((url / "data").iterdir())) == 3


def test_deleted_rows_are_refused(tmp_path: Path) -> None:
    url = tmp_path / "table.lance"
    table = lance.write_dataset(pa.table({"id": [1, 2, 3]}), url)
    table.delete("id = 2")
    with pytest.raises(FormatError, match=r"manifest: the table has deleted rows.*Write it again"):
        pipeprof.open_dataset(str(url))
    lance.write_dataset(lance.dataset(url).to_table(), tmp_path / "again.lance")
    assert ids(tmp_path / "again.lance") == [1, 3]


def test_columns_that_were_added_later_are_refused(tmp_path: Path) -> None:
    url = tmp_path / "table.lance"
    table = lance.write_dataset(pa.table({"id": [1, 2, 3]}), url)
    table.add_columns({"twice": "id * 2"})
    with pytest.raises(FormatError, match="several files each"):
        pipeprof.open_dataset(str(url))


def test_columns_that_were_renamed_or_dropped_are_refused(tmp_path: Path) -> None:
    for name in ("renamed", "dropped"):
        table = lance.write_dataset(pa.table({"id": [1, 2], "old": [3, 4]}), tmp_path / name)
        if name == "renamed":
            table.alter_columns({"path": "old", "name": "new"})
        else:
            table.drop_columns(["old"])
        with pytest.raises(FormatError, match=f"{name}: the table has no column 'old'"):
            pipeprof.open_dataset(str(tmp_path / name))
        dataset = pipeprof.open_dataset(str(tmp_path / name), columns=["id"])
        assert dataset.schema.names == ["id"]


def test_a_file_of_another_version_is_named() -> None:
    data = bytearray(encode(LANCE, ROWS))
    data[-8:-4] = bytes([0, 0, 2, 0])
    with pytest.raises(CorruptData, match=r"version 0\.2, which is not read; write it again"):
        parse_footer(bytes(data), len(data))


def test_a_footer_that_points_elsewhere_is_damage() -> None:
    data = bytearray(encode(LANCE, ROWS))
    data[-40:-32] = (2**60).to_bytes(8, "little")
    with pytest.raises(CorruptData, match="points outside the file"):
        read(LANCE, bytes(data))


def test_a_forked_process_is_warned_of_threads_that_it_lacks() -> None:
    read(LANCE, encode(LANCE, ROWS))
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def decode() -> None:
        try:
            read(LANCE, data)
        except UsageError as error:
            send.send(str(error))

    data = encode(LANCE, ROWS)
    child = context.Process(target=decode)
    child.start()
    assert receive.poll(20)
    assert "multiprocessing_context='spawn'" in receive.recv()
    child.join()


def test_without_the_package_the_error_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(LANCE, ROWS)
    monkeypatch.setitem(sys.modules, "lance.file", None)
    with pytest.raises(UsageError, match=r"pip install pylance, or pipeprof\[lance\]"):
        read(LANCE, data)
