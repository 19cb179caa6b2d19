"""A run's own counters say of any loader whether its data was in the page cache: cold, warm, mixed
or unknown."""

import mmap
import os
import re

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.model import BatchLog, DataSource
from pipeprof.storage.cache_state import infer_cache_state
from pipeprof.storage.page_cache import evict, residency
from tests.support.requirements import missing

MB = 1_000_000
BLOCK, BLOCKS = 2**20, 16


class Blocks(Dataset):
    """A user's data set that reads by system calls, which pipeprof does not wrap."""

    def __init__(self, path, mapped=False):
        self.path, self.mapped = path, mapped

    def __len__(self):
        return BLOCKS

    def __getitem__(self, index):
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            if self.mapped:
                with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as whole:
                    return torch.tensor(sum(whole[index * BLOCK : (index + 1) * BLOCK : 512]))
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            return torch.tensor(sum(os.pread(descriptor, BLOCK, index * BLOCK)[::512]))
        finally:
            os.close(descriptor)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "blocks"
    path.write_bytes(os.urandom(BLOCK * BLOCKS))
    if residency([str(path)]).reason:
        missing(f"a disk of this machine's own: {residency([str(path)]).reason}")
    evict([str(path)])
    return str(path)


def cache_of(dataset, workers):
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=4, num_workers=workers))
    list(loader)
    return loader.profile().cache


@pytest.fixture
def only_disks(monkeypatch):
    """Hide whatever else this machine has mounted."""
    monkeypatch.setattr("pipeprof.storage.cache_state.uncounted_kinds", lambda root: ())


@pytest.mark.usefixtures("only_disks")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_over_files_on_a_disk_is_cold_the_first_time_and_then_warm(
    file, workers, monkeypatch
):
    monkeypatch.setattr("pipeprof.measure.resource_sampler.SAMPLE_EVERY_S", 1e-6)  # each batch
    first, again = (cache_of(Blocks(file), workers) for _ in range(2))
    assert (first.state, again.state) == ("cold", "warm"), (first, again)
    assert re.match(r"of 1\d\.\d MB read in 4 sampled batches, devices moved", first.evidence)


def test_memory_maps_are_not_called_cold_or_warm(file, monkeypatch):
    monkeypatch.setattr("pipeprof.measure.resource_sampler.SAMPLE_EVERY_S", 1e-6)
    cache = cache_of(Blocks(file, mapped=True), 0)
    assert cache.state == "unknown"
    assert "memory maps" in cache.evidence


def test_a_data_set_of_ours_says_what_it_reads(tmp_path):
    (tmp_path / "x.csv").write_text("a\n" + "1\n" * 10)
    cache = cache_of(pipeprof.open_dataset(str(tmp_path)), 0)
    assert cache.state in ("unknown", "warm")
    assert "too little" in cache.evidence or "in memory" in cache.evidence


def log_of(logical, physical, seen=0.0):
    return BatchLog(
        index=(0, 1), bytes=(seen, 9e9),
        logical_bytes=(logical, None), physical_bytes=(physical, None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("log", "state", "words"),
    [
        (log_of(10 * MB, 10 * MB), "cold", "of 10.0 MB read in 1 sampled batches, devices moved"),
        (log_of(10 * MB, 5 * MB), "mixed", "devices moved 5.00 MB"),
        (log_of(10 * MB, 0), "warm", "devices moved 0 B"),
        (log_of(10_000, 0), "unknown", "too little to tell"),
        (log_of(MB, 50 * MB), "unknown", "memory maps"),
        (log_of(MB, 0, seen=50 * MB), "unknown", "most of 50.0 MB came through sockets"),
        (log_of(None, None), "unknown", "the kernel does not report"),
        (BatchLog(), "unknown", "the kernel does not report"),
    ],
)
@pytest.mark.usefixtures("only_disks")
def test_the_state_follows_what_devices_moved(log, state, words):
    cache = infer_cache_state(log, None)
    assert cache.state == state
    assert words in cache.evidence


MOUNTS = """
22 1 254:0 / / rw,relatime - overlay overlay rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:40 / /data rw - nfs4 server:/export rw
31 30 8:1 / /data/local rw - xfs /dev/sda1 rw
32 22 0:41 / /bucket rw - fuse.s3fs s3fs rw
34 22 0:43 / /ram rw - tmpfs tmpfs rw
"""


@pytest.fixture
def machine(tmp_path):
    """The /proc of another machine."""
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(MOUNTS)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("url", "state", "words"),
    [
        ("s3://bucket/x", "unknown", "caches behind s3:// cannot be observed"),
        ("/data/x", "unknown", "nfs4 may keep caches"),
        ("/bucket/x", "unknown", "fuse.s3fs may keep caches"),
        ("/ram/x", "warm", "tmpfs holds its files in memory"),
        ("/data/local/x", "warm", "devices moved 0 B"),
        (None, "unknown", "or on fuse.s3fs, nfs4, which may not be counted"),
    ],
)
def test_nothing_moved_is_no_proof_where_what_moves_is_not_counted(machine, url, state, words):
    source = DataSource(url, "csv", 1, 10 * MB) if url else None
    cache = infer_cache_state(log_of(10 * MB, 0), source, machine)
    assert cache.state == state
    assert words in cache.evidence


def test_what_devices_moved_is_proof_everywhere(machine):
    assert infer_cache_state(log_of(10 * MB, 10 * MB), None, machine).state == "cold"
