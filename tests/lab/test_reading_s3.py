"""Data sets on a real S3 server behind a link: ranges of 8 MiB fill it, in spite of its delay."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.model import ReadOptions
from pipeprof.units import format_rate
from tests.lab.conftest import RecordTruth
from tests.lab.far import BUCKET, far_store

pytestmark = [
    pytest.mark.lab,
    pytest.mark.link,
    # Python from 3.12 on warns of every fork beside threads, and every S3 client has threads
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

WARMUP_S, COUNTED_S = 3.0, 8.0
RANGES = ReadOptions(split_bytes=8 << 20, block_bytes=8 << 20)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far")
    for name in ("parquet", "tfrecord"):
        generate(GenerateSpec(str(folder / "root" / BUCKET / name), "images", name, 160_000_000,
                              shards=4))  # fmt: skip
    return folder


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("format_name", ["parquet", "tfrecord"])
def test_a_link_with_delay_is_filled(
    format_name: str,
    num_workers: int,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_truth: RecordTruth,
) -> None:
    """By two requests at a time of each process: one would leave a round trip between two.

    By pyarrow: obstore takes no ranges from this server, and s3fs fights main for Python's lock.
    """
    with far_store(400, 20, data, monkeypatch) as far:
        dataset = pipeprof.open_dataset(
            f"s3://{BUCKET}/{format_name}",
            batch_size=64,
            repeat=True,
            read=RANGES,
            storage_options={"s3_client": "pyarrow"},
        )
        rate = delivered_per_s(DataLoader(dataset, batch_size=None, num_workers=num_workers))
    record_truth(
        f"open_dataset, {format_name}, {num_workers} workers, 8 MiB ranges, 20 ms: rate",
        format_rate(far.link.bytes_per_s),
        format_rate(rate),
    )
    # The bar is 0.9; a busy machine may cost a little of it, one request at a time gives 0.84. And
    # batches come in lumps of a range, of which some fifty are counted.
    assert 0.87 * far.link.bytes_per_s <= rate <= 1.04 * far.link.bytes_per_s


def delivered_per_s(loader: DataLoader[Any]) -> float:
    """Bytes of images, of which there is hardly anything else, once all has begun."""
    begin = perf_counter() + WARMUP_S
    count, start = 0, 0.0
    for batch in loader:
        now = perf_counter()
        if now < begin:
            continue
        start = start or now
        if now > start + COUNTED_S:
            break
        count += len(batch["image"].values)
    return count / (now - start)
