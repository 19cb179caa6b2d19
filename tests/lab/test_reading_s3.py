"""Data sets on a real S3 server behind a link: ranges of 8 MiB fill it, in spite of its delay."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.model import ReadOptions
from pipeprof.units import format_rate
from tests.lab.conftest import Told
from tests.lab.far import BUCKET, far_store

pytestmark = [
    pytest.mark.lab,
    # Python from 3.12 on warns of every fork beside threads, and every S3 client has threads
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

RANGES = ReadOptions(split_bytes=8 << 20, block_bytes=8 << 20)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far")
    for name in ("parquet", "tfrecord"):
        generate(GenerateSpec(str(folder / "root" / BUCKET / name), "images", name, 160_000_000,
                              shards=4))  # fmt: skip
    return folder


@pytest.mark.parametrize(("num_workers", "least"), [(0, 0.8), (2, 0.9)])
@pytest.mark.parametrize("format_name", ["parquet", "tfrecord"])
def test_a_link_with_delay_is_filled(
    format_name: str,
    num_workers: int,
    least: float,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: Told,
) -> None:
    """Without workers there is one request at a time, and a round trip between two of them."""
    with far_store(400, 20, data, monkeypatch) as far:
        dataset = pipeprof.open_dataset(f"s3://{BUCKET}/{format_name}", batch_size=64, read=RANGES)
        loader = pipeprof.wrap(DataLoader(dataset, batch_size=None, num_workers=num_workers))
        for _ in loader:
            pass
        profile = loader.profile()
    rate = profile.throughput.bytes_per_s
    told(
        f"open_dataset, {format_name}, {num_workers} workers, 8 MiB ranges, 20 ms: rate",
        format_rate(far.link.bytes_per_s),
        format_rate(rate),
    )
    # what was read before the first measured batch is in it, a range's worth
    assert least * far.link.bytes_per_s <= rate <= 1.1 * far.link.bytes_per_s
