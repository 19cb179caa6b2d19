"""A few requests distinguish latency from bandwidth where a trial could not."""

import time
from dataclasses import replace

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipeprof import open_dataset
from pipeprof.analyze.assemble import assemble
from pipeprof.errors import StorageError
from pipeprof.model import SweepSpec
from pipeprof.sweep import disambiguate_storage
from pipeprof.sweep.disambiguate_storage import disambiguate, lone_requests
from tests.analyze.pipelines import inline_run
from tests.analyze.test_requests import MS, in_turn, log_of

MB = 1_000_000
SPEC = SweepSpec(("memory://settle",), (0,), (2,), (1,), 0.001)


@pytest.fixture
def dataset(monkeypatch):
    """4 MB of CSV in two objects."""
    monkeypatch.setattr(disambiguate_storage, "SMALL_S", 0.1)
    monkeypatch.setattr(disambiguate_storage, "LARGE_S", 0.3)
    MemoryFileSystem.store.clear()
    files = MemoryFileSystem()
    for name in "ab":
        files.pipe_file(f"/settle/{name}.csv", b"x,y\n" + b"1.50,2\n" * (2 * MB // 7))
    yield open_dataset("memory://settle")
    MemoryFileSystem.store.clear()


def slowed(monkeypatch, latency_s, bandwidth):
    """Slow down every request from now on."""
    read = MemoryFileSystem.cat_file

    def slow(self, path, start=None, end=None, **options):
        data = read(self, path, start=start, end=end, **options)
        time.sleep(latency_s + len(data) / bandwidth)
        return data

    monkeypatch.setattr(MemoryFileSystem, "cat_file", slow)


def open_question(size=250_000):
    """Return a run whose requests have one size and take 12.5 ms each, so the cause is open."""
    run = inline_run(read_s=20 * MS, decode_s=1 * MS, collate_s=0, other_s=0)
    log = log_of(*in_turn([size] * 40, 0.0, size / 12.5e-3))
    log = replace(log, store_s=log.seconds, store_cpu_s=0.05 * log.seconds)
    recording = replace(run, requests=log)
    profile = assemble(recording)
    assert profile.diagnosis.bottleneck == "read"
    return profile, recording


@pytest.mark.timed
@pytest.mark.parametrize(
    ("latency_s", "bandwidth", "part"),
    [(12 * MS, 2000 * MB, "storage-latency"), (0.2 * MS, 20 * MB, "storage-bandwidth")],
)
def test_lone_requests_distinguish_latency_from_bandwidth(
    dataset, monkeypatch, latency_s, bandwidth, part
):
    slowed(monkeypatch, latency_s, bandwidth)
    profile, recording = disambiguate(*open_question(), dataset, SPEC)
    assert profile.diagnosis.bottleneck == part
    lone = recording.lone_requests
    assert lone.small_bytes == 4096
    assert lone.large_bytes == pytest.approx(250_000, rel=0.05)
    assert lone.small_s >= latency_s
    assert lone.large_s >= latency_s + lone.large_bytes / bandwidth
    assert lone.count >= 3


def test_no_requests_are_sent_when_the_cause_is_known(dataset):
    profile, recording = open_question()
    known = replace(profile, diagnosis=replace(profile.diagnosis, bottleneck="decode"))
    assert disambiguate(known, recording, dataset, SPEC) == (known, recording)
    unseen = replace(profile, requests=None)
    assert disambiguate(unseen, recording, dataset, SPEC) == (unseen, recording)


def test_objects_that_are_too_small_show_nothing(dataset):
    assert lone_requests(dataset, 8 * MB, forget=False) is None
    profile, recording = open_question(8 * MB)
    assert disambiguate(profile, recording, dataset, SPEC) == (profile, recording)


def test_storage_that_fails_afterwards_leaves_the_trial_as_it_is(dataset, monkeypatch):
    def gone(self, path, start=None, end=None, **options):
        raise FileNotFoundError(path)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", gone)
    with pytest.raises(StorageError):
        lone_requests(dataset, 250_000, forget=False)
    profile, recording = open_question()
    assert disambiguate(profile, recording, dataset, SPEC) == (profile, recording)


def test_files_that_a_trial_left_in_memory_are_not_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x,y\n" + b"1.50,2\n" * (MB // 7))
    local = open_dataset(str(tmp_path))
    profile, recording = open_question()
    for cache in ("warm", "as-is"):
        spec = replace(SPEC, cache=cache)
        assert disambiguate(profile, recording, local, spec) == (profile, recording)
    lone = lone_requests(local, 250_000, forget=True)
    assert lone.large_bytes == 250_000
