"""Storage of known truth behind a real loader: each part of it is blamed when it is to blame."""

import time

import fsspec
import pytest
import torch

from tests.findings.known import burn, codes, profiled, text_of

pytestmark = pytest.mark.timed

MB = 1_000_000


class Known(fsspec.AbstractFileSystem):
    """Each request takes ``latency_s`` and its bytes at ``bandwidth``, and computes for
    ``client_s``."""

    protocol = "known"
    cachable = False

    def __init__(self, latency_s=0.0, bandwidth=1e12, client_s=0.0):
        super().__init__()
        self._latency_s, self._bandwidth, self._client_s = latency_s, bandwidth, client_s

    def cat_file(self, path, start=None, end=None, **options):
        time.sleep(self._latency_s + (end - start) / self._bandwidth)
        if self._client_s:
            burn(self._client_s)
        return bytes(end - start)


def read_through(store, size, workers):
    """40 batches, each of one request of ``size`` bytes, or of its number."""

    def fetch(index):
        length = size(index) if callable(size) else size
        return torch.tensor(len(store.cat_file("object", 0, length)))

    return profiled(40, fetch, 0.001, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_link_that_is_full(workers):
    store = Known(latency_s=0.001, bandwidth=100 * MB)
    profile = read_through(store, lambda index: (1 + index % 5) * MB, workers)
    assert profile.diagnosis.bottleneck == "storage-bandwidth"
    text = text_of(profile, "storage-bandwidth-bound")
    assert "1 request of 3.00 MB" in text
    assert "try num_workers=2 instead of" in text
    assert not codes(profile) & {"storage-latency-bound", "s3-client-bound", "storage-wait"}
    # a busy machine oversleeps, never the other way
    assert 50 * MB < profile.requests.fit.bandwidth < 110 * MB
    assert profile.ceilings["storage-bandwidth"].samples_per_s < 110 / 3


def test_answers_that_come_late_whatever_their_size():
    store = Known(latency_s=0.030)
    profile = read_through(store, lambda index: (1 + index % 5) * MB, 1)
    assert profile.diagnosis.bottleneck == "storage-latency"
    assert "Let each worker make several requests" in text_of(profile, "storage-latency-bound")
    assert 0.029 < profile.requests.fit.latency_intercept_s < 0.045


def test_a_client_that_computes():
    store = Known(latency_s=0.001, client_s=0.012)
    profile = read_through(store, 4096, 1)
    assert profile.diagnosis.bottleneck == "storage-client"
    text = text_of(profile, "s3-client-bound")
    assert "of CPU on a request" in text
    assert 0.012 <= profile.requests.client_cpu_s < 0.016


def test_equal_requests_of_one_run_do_not_tell():
    """20 ms for 2 MB: a late answer, or a link of 100 MB/s."""
    profile = read_through(Known(latency_s=0.020), 2 * MB, 1)
    assert profile.diagnosis.bottleneck == "read"
    assert "one run cannot tell" in profile.diagnosis.evidence
    assert "storage-wait" in codes(profile)
