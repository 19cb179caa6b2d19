"""Each pathology, for real: a loader that has it, and the finding that names it."""

import hashlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import pipeprof
from tests.findings.known import Samples, burn, codes, nap, on_cores, profiled, text_of, tiny

pytestmark = pytest.mark.timed


class Pool:
    """Hashes in so many threads of its own."""

    def __init__(self, threads):
        self._threads, self._pool = threads, None

    def __call__(self, index):
        self._pool = self._pool or ThreadPoolExecutor(self._threads)
        list(self._pool.map(hashlib.sha256, [bytes(2**22)] * 4))
        return tiny()


@pytest.mark.usefixtures("watched_often")
def test_native_threads_in_the_workers():
    with on_cores(2):
        profile = profiled(120, Pool(4), 0.001, num_workers=2)
    text = text_of(profile, "native-threads-oversubscribed")
    assert "or more threads on" in text
    assert "cpu-oversubscribed" not in codes(profile)
    assert profile.recommendations[0].setting == "worker_init_fn"


@contextmanager
def neighbours(count):
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_other_processes_on_the_same_cores():
    with on_cores(2), neighbours(4):
        profile = profiled(40, partial(burn, 0.010), 0.010, num_workers=1)
    found = [finding.code for finding in profile.findings]
    assert "noisy-neighbour" in found
    assert "cpu-oversubscribed" not in found


class SlowStore(fsspec.AbstractFileSystem):
    """Answers each request after 3 ms."""

    protocol = "slow"
    cachable = False

    def cat_file(self, path, start=None, end=None, **options):
        time.sleep(0.003)
        return bytes(4000)


def test_many_small_requests_of_storage():
    store = SlowStore()

    def fetch(index):
        return torch.tensor([sum(store.cat_file(f"{index}/{part}")) for part in range(5)])

    profile = profiled(60, fetch, 0.002, num_workers=1)
    assert profile.diagnosis.bottleneck == "storage-latency"
    text = text_of(profile, "storage-latency-bound")
    assert "5 requests of 4.00 kB" in text
    assert "Read more at once" in text
    assert "num_workers=" in text


def test_files_that_are_in_memory_already(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(2**21))

    def fetch(index):
        return torch.tensor(len(path.read_bytes()))

    profile = profiled(200, fetch, 0.001, num_workers=1)
    assert "moved 0 B" in text_of(profile, "page-cache-flatters")


def test_decoding_is_the_work():
    def fetch(index):
        with pipeprof.stage("decode"):
            return burn(0.010)

    profile = profiled(60, fetch, 0.001, num_workers=1)
    assert "of the" in text_of(profile, "decode-bound")
    assert "compute-bound" not in codes(profile)


class Uneven(IterableDataset):
    """The part of worker 1 takes twice as long as that of the others."""

    def __iter__(self):
        for index in range(50):
            yield nap(0.016 if get_worker_info().id == 1 else 0.008, index)


def test_one_worker_is_slower():
    loader = pipeprof.wrap(DataLoader(Uneven(), num_workers=2, batch_size=1), whole=True)
    for _ in loader:
        time.sleep(0.001)
    text = text_of(loader.profile(), "uneven-workers")
    assert "Worker #1" in text
    assert "get_worker_info" in text


def test_batches_without_tensors():
    numbers = [list(range(1000, 2000)) for _ in range(300)]
    profile = profiled(
        60, lambda index: numbers, 0.001, num_workers=1, collate_fn=lambda samples: samples
    )
    assert "no tensors" in text_of(profile, "pickled-batches")


IMAGES = {dtype: torch.zeros(4, 3, 224, 224, dtype=dtype) for dtype in (torch.float, torch.uint8)}


def images(index, dtype):
    """Four images, which took half a millisecond to read."""
    time.sleep(0.0005)
    return IMAGES[dtype]


def test_large_batches_of_floats():
    """A batch of 38 MB; as uint8 it is a quarter of that, and the loop gets faster."""
    floats, bytes_ = (
        profiled(400, partial(images, dtype=each), 0.001, num_workers=1, batch_size=16)
        for each in IMAGES
    )
    assert "A batch is 38.5 MB of tensors" in text_of(floats, "large-batches")
    assert bytes_.throughput.samples_per_s > 1.3 * floats.throughput.samples_per_s


def test_data_that_is_in_memory_already():
    profile = profiled(400, tiny, 0.001, num_workers=2)
    assert "num_workers=0" in text_of(profile, "in-memory-data")
    advice = profile.recommendations[0]
    assert (advice.setting, advice.proposed) == ("num_workers", "0")


class SlowSampler(torch.utils.data.Sampler):
    def __iter__(self):
        for index in range(60):
            time.sleep(0.010)
            yield index


def test_a_slow_sampler():
    for workers in (0, 1):
        profile = profiled(60, tiny, 0.002, sampler=SlowSampler(), num_workers=workers)
        assert f"num_workers={workers} makes no difference" in text_of(profile, "slow-sampler")
        assert profile.recommendations[0].setting == "sampler"


def test_a_thread_that_holds_the_interpreter():
    over = threading.Event()

    def count():
        while not over.is_set():
            sum(range(1000))

    beside = threading.Thread(target=count)
    beside.start()
    try:
        profile = profiled(40, partial(nap, 0.004), 0.002, num_workers=2)
    finally:
        over.set()
        beside.join()
    assert "block the interpreter" in text_of(profile, "main-process-bound")
    assert "num_workers" not in {advice.setting for advice in profile.recommendations}


@dataclass
class SlowToMove:
    """A batch whose copy to a device takes 3 ms."""

    values: torch.Tensor

    def to(self, device):
        time.sleep(0.003)
        return SlowToMove(self.values.to(device))


@pytest.mark.parametrize("blocking", [True, False])
def test_copies_from_pageable_memory_and_copies_that_block(blocking):
    loader = pipeprof.wrap(
        DataLoader(Samples(40, tiny), collate_fn=lambda samples: SlowToMove(samples[0]))
    )
    for batch in loader:
        assert pipeprof.to_device(batch, "meta", non_blocking=not blocking).values.is_meta
        time.sleep(0.002)
    profile = loader.profile()
    assert "pin_memory=True" in text_of(profile, "pageable-copies")
    assert ("blocking-copies" in codes(profile)) == blocking
    assert "pin_memory" in profile.recommendations[-1].setting


def test_workers_that_start_anew_in_each_epoch():
    slow_start = {"num_workers": 2, "worker_init_fn": lambda worker: time.sleep(0.1)}
    profile = profiled(20, tiny, 0.005, epochs=3, **slow_start)
    assert "3 epochs" in text_of(profile, "worker-start-up-each-epoch")
    assert "persistent_workers" in [advice.setting for advice in profile.recommendations]
    kept = profiled(20, tiny, 0.005, epochs=3, persistent_workers=True, **slow_start)
    assert "worker-start-up-each-epoch" not in codes(kept)
