"""A sample takes a bounded part of a data set, and reports how much and from where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeprof import formats
from pipeprof.errors import FormatError, UsageError
from pipeprof.sweep.convert.sample import MIN_SAMPLED_SPLITS, plan_sample, spread_evenly

ROWS = 1000
"""The rows of each row group or file."""


def table(start: int, rows: int = ROWS) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([f"row {number}" for number in ids]),
            "tokens": pa.array([[number] * (1 + number % 3) for number in ids]),
        }
    )


def write(folder: Path, format_name: str, files: int, groups: int = 1, **options: Any) -> str:
    """Write ``files`` files of ``groups`` times 1,000 rows with ascending ids."""
    folder.mkdir(exist_ok=True)
    for file in range(files):
        encoder = formats.get(format_name).encoder(table(0).schema, **options)
        parts = [encoder.write(table(ROWS * (groups * file + group))) for group in range(groups)]
        data = b"".join([*parts, encoder.finish()])
        (folder / f"{file:03d}{formats.get(format_name).suffixes[0]}").write_bytes(data)
    return str(folder)


def read(url: str, most_bytes: int, columns: Any = None, seed: int = 0) -> tuple[pa.Table, Any]:
    reader = plan_sample(url, columns, most_bytes, seed)
    rows = pa.Table.from_batches(list(reader))
    return rows, reader.taken


def test_a_split_of_each_stretch_is_chosen() -> None:
    chosen = spread_evenly(1000, 10, seed=3)
    assert [number // 100 for number in chosen] == list(range(10))
    assert chosen == spread_evenly(1000, 10, seed=3)
    assert chosen != spread_evenly(1000, 10, seed=4)
    assert spread_evenly(7, 7, seed=0) == tuple(range(7))


@pytest.mark.parametrize("format_name", list(formats.WRITTEN))
def test_small_data_is_sampled_completely(tmp_path: Path, format_name: str) -> None:
    url = write(tmp_path / "data", format_name, files=3)
    rows, sample = read(url, most_bytes=100_000_000)
    assert rows["id"].to_pylist() == list(range(3000))
    assert (sample.rows, sample.parts, sample.parts_in_all, sample.share) == (3000, 3, 3, 1.0)
    assert sample.ram_bytes == sum(batch.nbytes for batch in rows.to_batches())
    stored = sum(file.stat().st_size for file in (tmp_path / "data").iterdir())
    assert sample.storage_bytes == stored


@pytest.mark.parametrize("format_name", list(formats.WRITTEN))
def test_large_data_is_sampled_from_every_file(tmp_path: Path, format_name: str) -> None:
    url = write(tmp_path / "data", format_name, files=8)
    whole, _ = read(url, most_bytes=100_000_000)
    most = whole.nbytes // 4
    rows, sample = read(url, most)
    assert 0.8 * most < sample.ram_bytes <= most
    ids = rows["id"].to_pylist()
    assert ids == sorted(ids), "in the order of the data"
    assert {number // ROWS for number in ids} == set(range(8)), "of each file"
    assert sample.rows == len(ids)
    assert sample.share == pytest.approx(sample.rows / 8000, rel=0.1)
    again, _ = read(url, most)
    assert again.equals(rows)


def test_the_number_of_sampled_files_is_bounded(tmp_path: Path) -> None:
    url = write(tmp_path / "data", "parquet", files=2 * MIN_SAMPLED_SPLITS)
    whole, _ = read(url, most_bytes=100_000_000)
    rows, sample = read(url, whole.nbytes // 10)
    assert (sample.parts, sample.parts_in_all) == (MIN_SAMPLED_SPLITS, 2 * MIN_SAMPLED_SPLITS)
    files = {number // ROWS for number in rows["id"].to_pylist()}
    assert [file // 2 for file in sorted(files)] == list(range(MIN_SAMPLED_SPLITS))


@pytest.mark.parametrize("format_name", list(formats.WRITTEN))
def test_all_columns_are_taken_of_the_splits_that_a_trial_reads(
    tmp_path: Path, format_name: str
) -> None:
    url = write(tmp_path / "data", format_name, files=2, groups=3)
    rows, sample = read(url, 100_000_000, columns=("id",))
    assert set(rows.column_names) == {"id", "text", "tokens"}
    assert rows["id"].to_pylist() == list(range(6000))
    assert sample.share == 1.0


def test_the_share_of_row_groups_includes_the_footers(tmp_path: Path) -> None:
    url = write(tmp_path / "data", "parquet", files=4)
    stored = sum(file.stat().st_size for file in (tmp_path / "data").iterdir())
    _, sample = read(url, most_bytes=40_000)
    assert sample.rows < 4000
    assert sample.storage_bytes == round(stored * sample.rows / 4000)


def test_a_sample_too_small_for_one_row(tmp_path: Path) -> None:
    url = write(tmp_path / "data", "csv", files=1)
    with pytest.raises(UsageError, match="not one row fits into a sample of 8 B"):
        read(url, most_bytes=8)


def test_data_without_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id\n")
    with pytest.raises(FormatError, match="holds no rows"):
        read(str(tmp_path), most_bytes=1000)
