"""An object that is another one, shorter or gone when it is read: on a disk, and on a real S3."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import pipeprof
from pipeprof import formats
from pipeprof.errors import PipeprofError, StorageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.model import OnError
from tests.contracts.format_samples import encode

FORMATS = ["csv", "parquet", "tfrecord"]


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


PLACES = [*(("disk", name) for name in FORMATS), ("s3", "parquet")]


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """A URL, and the folder behind it."""
    if request.param == "disk":
        (tmp_path / "data").mkdir()
        return str(tmp_path / "data"), tmp_path / "data"
    bucket: Path = request.getfixturevalue("bucket")
    (bucket / "data").mkdir()
    return f"s3://{bucket.name}/data", bucket / "data"


def planned(place: tuple[str, Path], name: str, on_error: OnError = "fail") -> FileDataset:
    """A data set of two files, of 2,000 rows each."""
    url, folder = place
    for letter in "ab":
        data = encode(formats.get(name), rows(0, 2000), batch_rows=500)
        (folder / f"{letter}.{name}").write_bytes(data)
    return pipeprof.open_dataset(url, on_error=on_error)


def ids(dataset: FileDataset) -> list[int]:
    """As a worker reads them that opens files anew: one that is open stays as it was."""
    copy = pickle.loads(pickle.dumps(dataset))
    return [number for batch in copy for number in batch["id"].tolist()]


@pytest.mark.parametrize(("place", "name"), PLACES, indirect=["place"])
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_an_object_that_shrank(place: tuple[str, Path], name: str, on_error: OnError) -> None:
    """Missing data is not damage, and is never skipped."""
    dataset = planned(place, name, on_error=on_error)
    os.truncate(place[1] / f"b.{name}", 1000)
    with pytest.raises(StorageError, match=rf"b\.{name} .*cut short or replaced") as raised:
        ids(dataset)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("place", "name"), PLACES, indirect=["place"])
def test_an_object_that_vanished(place: tuple[str, Path], name: str) -> None:
    dataset = planned(place, name)
    (place[1] / f"b.{name}").unlink()
    with pytest.raises(StorageError, match=rf"b\.{name} cannot be read: "):
        ids(dataset)


@pytest.mark.parametrize(("place", "name"), PLACES, indirect=["place"])
def test_an_object_that_was_replaced_and_does_not_fit_its_plan(
    place: tuple[str, Path], name: str
) -> None:
    dataset = planned(place, name)
    size = (place[1] / f"b.{name}").stat().st_size
    other = encode(formats.get(name), rows(5000, 300), batch_rows=20)
    (place[1] / f"b.{name}").unlink()
    (place[1] / f"b.{name}").write_bytes(other[:size].ljust(size, b"\0"))
    with pytest.raises(PipeprofError, match=rf"b\.{name}") as raised:
        ids(dataset)
    assert "\n" not in str(raised.value)
