"""`open_dataset(on_error=…)`: damaged data is an error, or left out, counted and warned of."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.errors import CorruptData, FormatError, SchemaMismatch, StorageError, UsageError
from pipeprof.formats.base import ReadOptions
from pipeprof.formats.tfrecord.framing import frame
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.model import Skipped
from tests.contracts.format_samples import drive

FORKING = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def table(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(first, first + rows), pa.int64())})


def encoded(name: str, *counts: int) -> bytes:
    """Encode rows 0, 1, … with as many of them in each row group."""
    encoder, first, data = formats.get(name).encoder(table(0, 1).schema), 0, b""
    for count in counts:
        data += encoder.write(table(first, count))
        first += count
    return data + encoder.finish()


def skipping(url: object, **options: Any) -> tuple[list[int], FileDataset, list[str]]:
    """Return the ids that are read, the data set, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = pipeprof.open_dataset(str(url), on_error="skip", batch_size=4, **options)
        ids = [number for batch in dataset for number in batch["id"].tolist()]
    return ids, dataset, [str(warning.message) for warning in caught]


def without(missing: set[int], rows: int) -> list[int]:
    return [number for number in range(rows) if number not in missing]


def test_csv_leaves_out_rows(tmp_path: Path) -> None:
    lines = [b"%d,x" % number for number in range(1000)]
    lines[3], lines[700], lines[701] = b"3", b"700,x,y", b"701,\xff"
    lines[999] = b"many,x"
    (tmp_path / "x.csv").write_bytes(b"\n".join([b"id,text", *lines]))
    ids, dataset, messages = skipping(tmp_path, types={"id": "int64"})
    assert ids == without({3, 700, 701, 999}, 1000)
    assert dataset.source.skipped == Skipped(rows=4, parts=0, objects=0)
    assert len(messages) == 1
    assert messages[0].startswith(
        f"left out, as on_error='skip' asks: {tmp_path}/x.csv: row 4 after"
    )


def test_csv_says_which_row_it_was_that_failed_behind_rows_left_out() -> None:
    data = b"id,n\n" + b"".join(b"%d,%s\n" % (i, b"?" if i in (5, 77) else b"1") for i in range(99))
    fmt, schema = formats.get("csv"), pa.schema([("id", pa.int64()), ("n", pa.int64())])
    split = formats.base.Split(0, len(data))
    faults: list[formats.base.Fault] = []
    decoding = fmt.decode(len(data), split, schema, ReadOptions())
    read = list(drive(decoding, lambda at, n: data[at : at + n], faults.append))
    assert sum(batch.num_rows for batch in read) == 97
    assert [fault.rows for fault in faults] == [0, 1, 1]
    assert ["row 6 " in str(faults[1].error), "row 78 " in str(faults[2].error)] == [True, True]


def test_csv_with_more_bad_rows_than_are_looked_for_leaves_out_a_part(tmp_path: Path) -> None:
    lines = [b"%d" % number if number % 2 else b"odd" for number in range(2000)]
    (tmp_path / "x.csv").write_bytes(b"id\n" + b"\n".join(lines))
    ids, dataset, _ = skipping(tmp_path, types={"id": "int64"})
    assert ids
    assert set(ids) <= set(range(1, 2000, 2))
    skipped = dataset.source.skipped
    assert skipped is not None
    assert skipped.rows == 200
    assert skipped.parts > 0


def test_tfrecord_leaves_out_records_while_their_lengths_are_right(tmp_path: Path) -> None:
    data = bytearray(encoded("tfrecord", 1000))
    for number in (10, 998):
        data[_bounds(data, number)[1] - 5] ^= 1  # the last byte of the message
    start, stop = _bounds(data, 500)
    data[start:stop] = frame(b"no Example")
    (tmp_path / "x.tfrecord").write_bytes(data)
    ids, dataset, messages = skipping(tmp_path)
    assert ids == without({10, 500, 998}, 1000)
    assert dataset.source.skipped == Skipped(3, 0, 0)
    assert len(messages) == 1
    assert "record 10 at byte" in messages[0]


def _bounds(data: bytes | bytearray, number: int) -> tuple[int, int]:
    at = 0
    for _ in range(number):
        at += 16 + int.from_bytes(data[at : at + 8], "little")
    return at, at + 16 + int.from_bytes(data[at : at + 8], "little")


def test_tfrecord_leaves_out_the_rest_where_no_record_can_be_found(tmp_path: Path) -> None:
    data = bytearray(encoded("tfrecord", 100))
    data[_bounds(data, 60)[0]] ^= 1  # a length
    (tmp_path / "a.tfrecord").write_bytes(data)
    (tmp_path / "b.tfrecord").write_bytes(encoded("tfrecord", 100))
    ids, dataset, messages = skipping(tmp_path)
    assert ids == [*range(60), *range(100)]
    assert dataset.source.skipped == Skipped(0, 1, 0)
    assert len(messages) == 1
    assert "record 60 at byte" in messages[0]


def test_a_gzip_stream_that_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    whole = gzip.compress(encoded("tfrecord", 20_000))
    (tmp_path / "x.tfrecord.gz").write_bytes(whole[: len(whole) // 2])
    ids, dataset, messages = skipping(tmp_path, read=ReadOptions(block_bytes=2**14))
    assert ids == list(range(len(ids)))
    assert len(ids) > 5000
    assert dataset.source.skipped == Skipped(0, 1, 0)
    assert "truncated" in messages[0]


def test_parquet_leaves_out_row_groups(tmp_path: Path) -> None:
    data = bytearray(encoded("parquet", 30, 30, 30))
    column = pq.read_metadata(io.BytesIO(data)).row_group(1).column(0)
    data[column.dictionary_page_offset + column.total_compressed_size - 2] ^= 1
    (tmp_path / "x.parquet").write_bytes(data)
    ids, dataset, messages = skipping(tmp_path)
    assert ids == [*range(30), *range(60, 90)]
    assert dataset.source.skipped == Skipped(30, 0, 0)
    assert "row group 1 is damaged" in messages[0]


@pytest.mark.parametrize("name", ["csv", "parquet", "tfrecord"])
def test_an_object_that_cannot_be_planned_is_left_out_whole(name: str, tmp_path: Path) -> None:
    good = encoded(name, 10)
    (tmp_path / f"b.{name}").write_bytes(good)
    bad = b"\n\n\n" if name == "csv" else good[:-3] if name == "parquet" else good[:20]
    for letter in "ac":
        (tmp_path / f"{letter}.{name}").write_bytes(bad)
    ids, dataset, messages = skipping(tmp_path)
    assert ids == list(range(10))
    assert dataset.source.skipped == Skipped(0, 0, 2)
    assert len(messages) == 2
    with pytest.raises(CorruptData, match=rf"a\.{name}"):
        list(pipeprof.open_dataset(str(tmp_path)))


def test_an_object_with_other_columns_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,n\n1,1\n2,2\n")
    (tmp_path / "b.csv").write_bytes(b"id\n3\n")
    (tmp_path / "c.csv").write_bytes(b"id,n\nx,1\n")
    (tmp_path / "d.csv").write_bytes(b"id,n,more\n4,4,4\n")
    ids, dataset, messages = skipping(tmp_path)
    assert ids == [1, 2, 4]
    assert dataset.source.skipped == Skipped(0, 0, 2)
    assert [f"{letter}.csv" in text for letter, text in zip("bc", messages, strict=True)] == [
        True
    ] * 2


def test_an_object_of_which_not_even_the_format_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(bytes(100))
    (tmp_path / "b.parquet").write_bytes(encoded("parquet", 10))
    ids, dataset, messages = skipping(tmp_path)
    assert (ids, dataset.source.skipped, len(messages)) == (list(range(10)), Skipped(0, 0, 1), 1)


def test_nothing_that_can_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\n")
    (tmp_path / "b.csv").write_bytes(b"")
    with pytest.warns(UserWarning, match="left out"), pytest.raises(FormatError, match=r"a\.csv"):
        pipeprof.open_dataset(str(tmp_path), on_error="skip")


@FORKING
@pytest.mark.parametrize(("repeat", "num_workers"), [(False, 0), (True, 0), (True, 2)])
def test_an_epoch_that_leaves_out_everything_is_an_error_and_never_endless(
    repeat: bool, num_workers: int, tmp_path: Path
) -> None:
    damaged = bytearray(encoded("tfrecord", 3))
    for number in range(3):
        damaged[_bounds(damaged, number)[1] - 1] ^= 1
    for letter in "ab":
        (tmp_path / f"{letter}.tfrecord").write_bytes(encoded("tfrecord", 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pipeprof.open_dataset(str(tmp_path), on_error="skip", repeat=repeat)
        for letter in "ab":
            (tmp_path / f"{letter}.tfrecord").write_bytes(damaged)
        loader = DataLoader(dataset, batch_size=None, num_workers=num_workers)
        try:
            list(loader)
        except FormatError as error:
            error.with_traceback(None)  # it holds the iterator, and with it the workers
            message = str(error)
        else:
            raise AssertionError("an epoch of nothing passed")
    assert "on_error='skip' left out all rows" in message
    assert dataset.source.skipped == Skipped(6, 0, 0)


@FORKING
def test_a_worker_whose_share_is_left_out_does_not_stop_the_others(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.tfrecord").write_bytes(encoded("tfrecord", 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pipeprof.open_dataset(str(tmp_path), on_error="skip")
        (tmp_path / "1.tfrecord").write_bytes(bytes(len(encoded("tfrecord", 5))))
        loader = pipeprof.wrap(DataLoader(dataset, batch_size=None, num_workers=3))
        rows = sum(len(batch["id"]) for batch in loader)
    assert rows == 10
    source = loader.profile().source
    assert source is not None
    assert source.skipped == Skipped(0, 1, 0)
    assert any("on_error=skip" in note for note in loader.profile().notes)
    assert "1 part left out" in " ".join(str(loader.profile()).split())


def test_an_error_of_storage_is_never_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(encoded("tfrecord", 5))
    (tmp_path / "b.tfrecord").write_bytes(encoded("tfrecord", 5))
    dataset = pipeprof.open_dataset(str(tmp_path), on_error="skip")
    os.truncate(tmp_path / "b.tfrecord", 60)
    with pytest.raises(StorageError, match=r"b\.tfrecord ended at byte 60"):
        list(dataset)
    assert dataset.source.skipped == Skipped(0, 0, 0)


def test_warnings_are_one_per_object_and_ten_in_all(tmp_path: Path) -> None:
    for number in range(15):
        (tmp_path / f"{number:02}.csv").write_bytes(b"id\n1\n2\nx\n")
    ids, dataset, messages = skipping(tmp_path, types={"id": "int64"})
    assert ids == [1, 2] * 15
    assert dataset.source.skipped == Skipped(15, 0, 0)
    assert len(messages) == 10
    assert messages[-1].endswith("Further objects are counted without a warning.")


def test_what_is_damaged_is_an_error_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id\n1\nx\n")
    dataset = pipeprof.open_dataset(str(tmp_path), types={"id": "int64"})
    assert dataset.source.skipped is None
    with pytest.raises(SchemaMismatch, match=r"a\.csv: row 2"):
        list(dataset)
    with pytest.raises(UsageError, match="on_error is 'ignore'; it must be one of 'fail', 'skip'"):
        pipeprof.open_dataset(str(tmp_path), on_error="ignore")  # type: ignore[arg-type]


def test_counts_of_workers_add_up_in_shared_memory() -> None:
    skips = SkipCounter("skip")
    copy = pickle.loads(pickle.dumps(skips))
    assert copy.total == Skipped(0, 0, 0)
    with pytest.warns(UserWarning, match="left out"):
        skips.skip_rows("a", CorruptData("a is bad"), 3, worker=0)
    skips.skip_rows("a", CorruptData("a is bad"), 4, worker=1)
    skips.skip_rows("a", CorruptData("a is bad"), None, worker=1)
    assert skips.total == Skipped(7, 1, 0)
