"""Data sets on a real S3 server: the same rows as on a local disk."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import s3fs
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.loaders.tensors import Ragged
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import Stage
from pipeprof.storage import open_store

# Python from 3.12 on warns of every fork beside threads, and every S3 client has threads
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


def batches(url: str, num_workers: int) -> list[dict[str, Any]]:
    """Each batch, its tensors as types and bytes, in the order of the loader."""
    dataset = pipeprof.open_dataset(url, batch_size=64)
    start = "spawn" if dataset.unforkable and num_workers else None
    loader: Any = DataLoader(
        dataset, batch_size=None, num_workers=num_workers, multiprocessing_context=start
    )
    return [{name: exactly(column) for name, column in batch.items()} for batch in loader]


def exactly(column: Any) -> tuple[Any, ...]:
    parts = [column.offsets, column.values] if isinstance(column, Ragged) else [column]
    return tuple((part.dtype, part.shape, part.numpy().tobytes()) for part in parts)


def ids(url: str) -> list[int]:
    return [number for batch in pipeprof.open_dataset(url) for number in batch["id"].tolist()]


@pytest.mark.parametrize(
    "format_name",
    [
        pytest.param(name, marks=() if name in ("csv", "parquet", "tfrecord") else pytest.mark.slow)
        for name in formats.WRITTEN
    ],
)
def test_a_data_set_written_to_s3_gives_the_same_rows_as_on_disk(
    format_name: str, bucket: Path, tmp_path: Path
) -> None:
    for url in (f"s3://{bucket.name}/data", str(tmp_path)):
        generate(GenerateSpec(url, "tabular", format_name, size_bytes=100_000, shards=3))
    assert sorted(path.name for path in (bucket / "data").iterdir()) == sorted(
        path.name for path in tmp_path.iterdir()
    )
    for num_workers in (0, 2):
        expected = batches(str(tmp_path), num_workers)
        assert len(expected) >= 9
        assert batches(f"s3://{bucket.name}/data", num_workers) == expected


def test_ranges_are_exact_and_recorded_as_one_read(bucket: Path) -> None:
    (bucket / "x.bin").write_bytes(bytes(range(100)))
    store = open_store(f"s3://{bucket.name}")
    (item,) = store.find(f"s3://{bucket.name}")
    with tallied(Tally()) as tally:
        first, second = store.read(item, [(10, 5), (90, 10)])
    assert (bytes(first), bytes(second)) == (bytes(range(10, 15)), bytes(range(90, 100)))
    assert (tally.charges, tally.bytes, tally.requests) == (1, 15, 2)
    assert list(tally.seconds) == [Stage.READ]


def test_a_listing_of_more_than_one_page_is_whole(bucket: Path) -> None:
    names = [f"part-{number:04d}.csv" for number in range(1_050)]
    (bucket / "many").mkdir()
    for name in names:
        (bucket / "many" / name).write_bytes(b"x\n1\n")
    url = f"s3://{bucket.name}/many"

    page = s3fs.S3FileSystem().call_s3("list_objects_v2", Bucket=bucket.name, Prefix="many/")
    assert (len(page["Contents"]), page["IsTruncated"]) == (1_000, True)
    for asked in (url, f"{url}/part-*.csv"):
        assert [item.url for item in open_store(url).find(asked)] == [f"{url}/{n}" for n in names]


def test_objects_replaced_since_the_listing_are_listed_again(bucket: Path) -> None:
    """s3fs caches its listings as long as the process lives."""
    url = f"s3://{bucket.name}/data"
    (bucket / "data").mkdir()
    (bucket / "data" / "a.csv").write_bytes(b"id\n1\n")
    assert ids(url) == [1]
    (bucket / "data" / "a.csv").write_bytes(b"id\n1\n2\n3\n")
    (bucket / "data" / "b.csv").write_bytes(b"id\n4\n")
    assert ids(url) == [1, 2, 3, 4]
    assert ids(f"{url}/a.csv") == [1, 2, 3]


def test_a_worker_does_not_break_its_parents_client(bucket: Path) -> None:
    """Both share one epoll, so a worker that closed its client would break its parent's."""
    url = f"s3://{bucket.name}/x.csv"
    (bucket / "x.csv").write_bytes(b"id\n1\n")
    assert ids(url) == [1], "from now on there are open connections"
    assert len(batches(url, num_workers=2)) == 1
    start = perf_counter()
    assert ids(url) == [1]
    assert perf_counter() - start < 10, "s3fs gives up a connection after 15 s"
