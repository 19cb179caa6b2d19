"""What a sweep says of a local cache, against trainings with and without one behind a link."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter, sleep

import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.cli.app import run
from pipeprof.model import ReadOptions
from pipeprof.storage.local_cache import cached_files
from pipeprof.storage.page_cache import evict
from tests.lab.conftest import RecordTruth
from tests.lab.far import BUCKET, far_store

pytestmark = [
    pytest.mark.lab,
    pytest.mark.link,
    # Python from 3.12 on warns of every fork beside threads, and every S3 client has threads
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

URL = f"s3://{BUCKET}/tfrecord"
STEP_S = 0.010
EPOCHS = 3
SWEEP = [
    "sweep", URL, "--workers", "2", "--batch-size", "16", "--step-ms", f"{STEP_S * 1000:.0f}",
    "--trial-time", "3", "--warmup-time", "1", "--s3-client", "pyarrow",
]  # fmt: skip


def test_a_cache_gains_what_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_truth: RecordTruth
) -> None:
    """Over a whole training of some epochs, not only in the passes that the sweep has timed."""
    served = tmp_path / "far"
    folder = str(served / "root" / BUCKET / "tfrecord")
    generate(GenerateSpec(folder, "images", "tfrecord", 40_000_000, shards=8))
    with far_store(100, 20, served, monkeypatch):
        out, nvme = tmp_path / "out", tmp_path / "nvme"
        assert run([*SWEEP, "--local-cache", f"{nvme}:1GB", "--out", str(out)]) == 0
        assert not nvme.exists(), "nothing stays there"
        saved = json.loads((out / "sweep.json").read_text())
        assert saved["local_cache"], saved["notes"]
        [found] = saved["local_cache"].values()
        without = trained_s(ReadOptions())
        with_cache = trained_s(ReadOptions(local_cache=str(nvme)))
    cost = found["filling"]["samples_per_s"] / found["uncached"]["samples_per_s"]
    promised = (1 / cost + (EPOCHS - 1) / found["gain"]) / EPOCHS
    record_truth(
        f"{EPOCHS} epochs with a local cache, as a share of those without one: promise",
        f"{with_cache / without:.3f}",
        f"{promised:.3f}",
    )
    assert found["difference"] == "faster"
    assert promised == pytest.approx(with_cache / without, rel=0.25)


def trained_s(read: ReadOptions) -> float:
    """Return the seconds of a training, from the first batch of its first epoch on."""
    dataset = pipeprof.open_dataset(
        URL, batch_size=16, read=read, storage_options={"s3_client": "pyarrow"}
    )
    loader = DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    start = 0.0
    for _ in range(EPOCHS):
        for _ in loader:
            start = start or perf_counter()
            sleep(STEP_S)
        if read.local_cache:  # a data set that is worth a cache is larger than the memory
            evict(cached_files(read.local_cache))
    return perf_counter() - start
