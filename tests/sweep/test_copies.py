"""A sample written in other formats: the same rows, whole files, or nothing and the reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof.errors import NothingFound, OutputError, UsageError
from pipeprof.formats import WRITTEN
from pipeprof.manifest import MANIFEST
from pipeprof.model import ConversionSpec, Copy
from pipeprof.sweep.convert.copies import new_root, plan_copies, remove_copy
from pipeprof.sweep.convert.copy_writer import CopyWriter
from pipeprof.sweep.convert.sample import plan_sample
from tests.contracts.format_samples import meaning

MIB = 2**20
BATCH = pa.record_batch(
    {
        "id": pa.array(range(4000), pa.int64()),
        "price": pa.array([None if n % 7 == 0 else n / 4 for n in range(4000)], pa.float32()),
        "name": pa.array([f'ä, "{n}"' for n in range(4000)]),
        "photo": pa.array([bytes([n % 256, 0, 255]) * 9 for n in range(4000)], pa.binary()),
        "tokens": pa.array([[n] * (1 + n % 5) for n in range(4000)], pa.list_(pa.int64())),
    }
)


def planned(formats: str, **more: Any) -> list[Copy]:
    spec = ConversionSpec(tuple(formats.split(",")), ("local",), 10**9, **more)
    return list(plan_copies(spec, {"local": "/x"}))


def write(copy: Copy, url: Path | str, batch: pa.RecordBatch = BATCH, workers: int = 0) -> Copy:
    rows = [batch[start : start + 300] for start in range(0, batch.num_rows, 300)]
    return CopyWriter(copy, str(url), batch.schema, batch.nbytes, workers).write(rows)


@pytest.mark.parametrize(
    "name",
    [
        "csv",
        "csv:gzip",
        "parquet",
        "parquet:zstd",
        "tfrecord",
        "tfrecord:gzip",
        "arrow:lz4",
        "jsonl",
        "webdataset",
        "mds:zstd",
        "lance:zstd",
    ],
)
def test_a_copy_holds_the_same_rows_of_the_same_types(tmp_path: Path, name: str) -> None:
    [plan] = planned(name)
    copy = write(plan, tmp_path / "copy")
    reader = plan_sample(str(tmp_path / "copy"), None, 10**9, 0)
    found = pa.Table.from_batches(list(reader)).select(BATCH.schema.names)
    whole = pa.Table.from_batches([BATCH])
    if name.startswith("mds"):  # which stores no nulls
        assert meaning(found) == meaning(whole)
    else:
        assert found.equals(whole)
    files = [file for file in (tmp_path / "copy").iterdir() if file.name != MANIFEST]
    assert copy.rows == 4000
    assert copy.objects == len(files)
    assert copy.bytes == sum(file.stat().st_size for file in files)
    assert copy.write_s > 0


@pytest.mark.parametrize("name", list(WRITTEN))
def test_there_are_files_enough_for_all_workers(tmp_path: Path, name: str) -> None:
    [plan] = planned(name)
    assert 16 <= write(plan, tmp_path / "a", workers=8).objects <= 18
    assert 8 <= write(plan, tmp_path / "b", workers=0).objects <= 9


def test_row_groups_and_files_are_as_large_as_asked_for(tmp_path: Path) -> None:
    rows = pa.record_batch({"id": pa.array(range(1_000_000), pa.int64())})
    small, large = planned("parquet:none", row_group_bytes=(MIB, 4 * MIB))
    assert (small.name, large.name) == (
        "parquet:none, 1 MiB groups",
        "parquet:none, 4 MiB groups",
    )
    for copy, most in ((small, MIB // 8), (large, 4 * MIB // 8)):
        write(copy, tmp_path / copy.name, rows)
        metadata = pq.read_metadata(sorted((tmp_path / copy.name).glob("*.parquet"))[0])
        assert metadata.row_group(0).num_rows == most

    first, second = planned("csv", shard_bytes=(MIB, 3 * MIB))
    for copy, least in ((first, MIB), (second, 3 * MIB)):
        write(copy, tmp_path / copy.name, rows)
        *sizes, _ = [path.stat().st_size for path in sorted((tmp_path / copy.name).glob("*.csv"))]
        assert sizes
        assert all(least <= size < least + 2 * MIB for size in sizes)


def test_each_format_is_planned_once() -> None:
    spec = ConversionSpec(("csv", "parquet", "parquet:snappy", "csv"), ("local", "/y"), 1)
    copies = plan_copies(spec, {"local": "/x", "/y": "/y/z"})
    assert [(copy.storage, copy.name, copy.compression, copy.url) for copy in copies] == [
        ("local", "csv", "none", "/x/csv-none"),
        ("local", "parquet", "snappy", "/x/parquet-snappy"),
        ("/y", "csv", "none", "/y/z/csv-none"),
        ("/y", "parquet", "snappy", "/y/z/parquet-snappy"),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("orc", "'orc' is not a format; choose one of csv, parquet, tfrecord"),
        ("parquet:brotli", "parquet cannot be compressed by 'brotli'; choose one of snappy, zstd"),
        ("csv:", "csv cannot be compressed by ''"),
    ],
)
def test_an_unknown_format(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        planned(name)


@pytest.mark.parametrize(
    ("name", "column", "words"),
    [
        ("tfrecord", pa.array([0.1, 0.2], pa.float64()), "'x'"),
        ("csv", pa.array(["a", "b\0"]), "NUL character"),
    ],
)
def test_rows_that_a_format_cannot_hold_leave_a_reason_and_no_files(
    tmp_path: Path, name: str, column: pa.Array, words: str
) -> None:
    [plan] = planned(name)
    copy = write(plan, tmp_path / "copy", pa.record_batch({"x": column}))
    assert copy.skipped is not None
    assert words in copy.skipped
    assert os.listdir(tmp_path) == []


def test_a_broken_source_leaves_no_file_that_looks_whole(tmp_path: Path) -> None:
    def rows() -> Any:
        yield BATCH
        raise KeyboardInterrupt

    [plan] = planned("csv")
    CopyWriter(plan, f"{tmp_path}/copy", BATCH.schema, 1).claim()
    with pytest.raises(KeyboardInterrupt):
        CopyWriter(plan, f"{tmp_path}/copy", BATCH.schema, 10**9).write(rows())
    assert [name[0] for name in os.listdir(tmp_path / "copy")] == ["_"]
    remove_copy(str(tmp_path / "copy"))
    assert os.listdir(tmp_path) == []


def test_an_unwritable_folder_is_reported_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [plan] = planned("csv")
    with pytest.raises(OutputError, match="a part of this path is a file"):
        CopyWriter(plan, f"{tmp_path}/file/copy", BATCH.schema, 1).claim()


def test_a_claimed_folder_holds_no_data_yet(tmp_path: Path) -> None:
    [plan] = planned("csv")
    CopyWriter(plan, f"{tmp_path}/copy", BATCH.schema, 1).claim()
    assert [name[0] for name in os.listdir(tmp_path / "copy")] == ["_"]
    with pytest.raises(NothingFound):
        plan_sample(f"{tmp_path}/copy", None, 1, 0)
    assert write(plan, tmp_path / "copy").rows == 4000


def test_roots_are_new_each_time() -> None:
    assert new_root("local", Path("results/a")) == "results/a-data"
    one, other = (new_root("s3://bucket/tmp/", Path("results/a")) for _ in range(2))
    assert one.startswith("s3://bucket/tmp/pipeprof-a-")
    assert one != other
