"""Pathologies that show however busy the machine is: a loader that has one, and what names it."""

import asyncio
import os
import re
import resource
import threading
import time
from functools import partial

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from tests.findings.known import Samples, codes, nap, on_cores, profiled, text_of, tiny
from tests.loaders.forms import prepared


def test_fewer_cores_than_the_machine_shows():
    with on_cores(1):
        profile = profiled(30, partial(nap, 0.005), 0.001)
    if profile.environment.cores_visible > 1:
        assert "1 of" in text_of(profile, "fewer-cores-than-shown")


def test_a_first_batch_that_takes_long():
    profile = profiled(12, tiny, 0.001, num_workers=1, worker_init_fn=lambda _: time.sleep(5.1))
    after = re.search(r"after (\d+)", text_of(profile, "slow-start"))
    assert after is not None
    assert int(after[1]) >= 5


def test_workers_forked_beside_a_network_client():
    loop = asyncio.new_event_loop()  # as s3fs, gcsfs and many another client keep one
    client = threading.Thread(target=loop.run_forever)
    client.start()
    try:
        text = text_of(profiled(10, tiny, 0.001, num_workers=1), "fork-with-threads")
        server = profiled(2, abs, 0.0, num_workers=1, multiprocessing_context="forkserver")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        client.join()
        loop.close()
    assert "(run_forever)" in text
    assert "fork-with-threads" not in [finding.code for finding in server.findings]


class Leak:
    """Keeps 400 kB more with each sample."""

    def __init__(self):
        self._kept = []

    def __call__(self, index):
        time.sleep(0.005)
        self._kept.append(bytearray(b"x") * 400_000)
        return tiny()


@pytest.mark.usefixtures("watched_often")
def test_a_leak_in_persistent_workers():
    profile = profiled(100, Leak(), 0.001, epochs=2, num_workers=1, persistent_workers=True)
    text = text_of(profile, "worker-memory-grows")
    assert "persistent workers keep what leaks" in text
    assert "last" in text, "how long the memory will do"


@pytest.mark.usefixtures("watched_often")
def test_copies_of_python_objects_that_forked_workers_touch():
    samples = [[float(number) for number in range(4000)] for _ in range(600)]

    def fetch(index):
        time.sleep(0.002)
        return torch.tensor(sum(map(abs, samples[index])))

    profile = profiled(600, fetch, 0.001, num_workers=1)
    assert "arrays or tensors" in text_of(profile, "worker-memory-grows")


def test_descriptors_of_batches_that_are_kept():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = len(os.listdir("/proc/self/fd")) + 300  # other tests may have left some open
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, before[1]))
    try:
        loader = pipeprof.wrap(DataLoader(Samples(60, lambda _: [tiny(0)] * 4), num_workers=1))
        kept = list(loader)
        text = text_of(loader.profile(), "descriptors-near-limit")
        del kept
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert f"of {allowed} allowed" in text
    assert "Each of the 4 tensors" in text


def test_options_that_a_framework_loses() -> None:
    given = {"prefetch_factor": 4, "persistent_workers": True, "in_order": False}
    loader = pipeprof.wrap(DataLoader(Samples(40, tiny), num_workers=2, **given))
    list(prepared(loader))
    assert "in_order=False, prefetch_factor=4, persistent_workers=True" in text_of(
        loader.profile(), "options-lost"
    )
    list(prepared(loader, **given))
    assert "options-lost" not in codes(loader.profile())
