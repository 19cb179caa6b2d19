"""Reading from a disk whose speed is known: what we say of it is what it is."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from tests.lab.disk import evict, slow_disk

pytestmark = pytest.mark.lab

MB = 1_000_000
BLOCK = 1 << 20
BLOCKS = 48


class Blocks(Dataset[torch.Tensor]):
    """Reads stretches of one file, as a data set of the user's own would."""

    def __init__(self, path: Path, offsets: list[int], size: int) -> None:
        self.path, self.offsets, self.size = path, offsets, size

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, index: int) -> torch.Tensor:
        with pipeprof.stage("read"), open(self.path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
            file.seek(self.offsets[index])
            return torch.frombuffer(bytearray(file.read(self.size)), dtype=torch.uint8)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    path = tmp_path / "blocks"
    path.write_bytes(random.Random(5).randbytes(BLOCK) * BLOCKS)
    evict(path)
    return path


def run(dataset: Dataset[torch.Tensor], workers: int) -> pipeprof.Profile:
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None, num_workers=workers))
    for _ in loader:
        time.sleep(0.001)
    return loader.profile()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_disk_of_known_bandwidth_is_measured_and_blamed(blocks: Path, workers: int) -> None:
    offsets = [number * BLOCK for number in range(BLOCKS)]
    with slow_disk(blocks.parent, bytes_per_s=20 * MB):
        profile = run(Blocks(blocks, offsets, BLOCK), workers)
    expected_s = BLOCK / (20 * MB)
    # the kernel hands out what may be read in slices: a short run gets a little more
    assert profile.stages["read"].mean_s == pytest.approx(expected_s, rel=0.25)
    assert profile.throughput.batches_per_s * BLOCK == pytest.approx(20 * MB, rel=0.25)
    assert profile.diagnosis.verdict == "starved"
    assert profile.diagnosis.bottleneck == "read"
    assert profile.blame["read"] == pytest.approx(profile.stall_s, rel=0.1)
    assert profile.resources["blocked"].mean_s == pytest.approx(
        profile.stages["read"].mean_s, rel=0.15
    )


def test_physical_bytes_tell_a_cold_file_from_a_cached_one(blocks: Path) -> None:
    dataset = Blocks(blocks, [number * BLOCK for number in range(BLOCKS)], BLOCK)
    with slow_disk(blocks.parent, bytes_per_s=40 * MB):
        cold, warm = run(dataset, 1).batches, run(dataset, 1).batches
    cold_sampled = [size - BLOCK for size in cold.physical_bytes if size is not None]
    warm_sampled = [size for size in warm.physical_bytes if size is not None]
    for beyond in (cold_sampled, warm_sampled):
        assert beyond
        assert 0 <= min(beyond) <= max(beyond) < BLOCK / 10, "a page of a library, at most"


def test_a_disk_of_known_latency_is_blamed_and_its_cores_are_not(blocks: Path) -> None:
    places = random.Random(1).sample(range(BLOCKS * BLOCK // 4096), 300)
    with slow_disk(blocks.parent, requests_per_s=100):
        profile = run(Blocks(blocks, [place * 4096 for place in places], 4096), 1)
    assert profile.throughput.batches_per_s == pytest.approx(100, rel=0.25)
    # the kernel lets ten pass at a time; the worker's own time between reads counts as theirs, too
    assert 0.005 < profile.stages["read"].mean_s < 0.012
    assert profile.diagnosis.bottleneck == "read"
    blocked, cpu = profile.resources["blocked"], profile.resources["cpu"]
    assert blocked.mean_s > 5 * cpu.mean_s
