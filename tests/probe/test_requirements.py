"""The needs of training, on real files: what is written is gone afterwards, whatever happens."""

from __future__ import annotations

import os

import fsspec
import pytest

from pipeprof.errors import StorageError
from pipeprof.probe.budget import Budget
from pipeprof.probe.concurrency_ramp import ProbeSpec, probe
from pipeprof.probe.requirements import measure_checkpoint, measure_small_reads
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.target import open_target
from pipeprof.probe.worker_pool import ReaderPool
from tests.probe.test_load import FREE, Sleeps

DEMAND = LoadSpec("random", 1000, 2)


def saved(url, target=None, size_bytes=3_000_000):
    readers = ReaderPool(target or Sleeps(0.001))
    return measure_checkpoint(url, {}, size_bytes, readers, DEMAND, Budget(FREE, FREE))


def test_a_checkpoint_is_written_twice_and_removed(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), fsync(fd)))
    found = saved(str(tmp_path))
    assert synced == [3_000_000, 3_000_000]
    assert found.size_bytes == 3_000_000
    assert min(found.alone_bytes_per_s, found.feeding_bytes_per_s) > 0
    assert found.feed is not None
    assert 0 < found.feed.requests_per_s <= 2 / 0.001
    assert list(tmp_path.iterdir()) == []


def test_small_files_are_read_one_by_one_and_removed(tmp_path):
    found = measure_small_reads(str(tmp_path), {}, files=20)
    assert found.files == 20
    assert found.p50_s <= found.p99_s
    # half of the files take the median or longer, and none of twenty much longer than p99
    assert 0.8 / found.p99_s <= found.files_per_s <= 2 / found.p50_s
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_behind_an_error(tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for broken in (lambda: saved(str(tmp_path)), lambda: measure_small_reads(str(tmp_path), {}, 5)):
        with pytest.raises(StorageError, match=r"cannot be written: .*No space left"):
            broken()
    assert list(tmp_path.iterdir()) == []


def test_a_feed_that_fails_meanwhile_is_told(tmp_path):
    with pytest.raises(StorageError, match="gone"):
        saved(str(tmp_path), Sleeps(0.001, fails=3))
    assert list(tmp_path.iterdir()) == []


def test_of_very_many_files_some_are_read_all_over(tmp_path):
    for number in range(600):
        (tmp_path / f"{number:03}").write_bytes(bytes(4096))
    names = [item.path[-3:] for item in open_target(str(tmp_path)).objects]
    assert names == [f"{number:03}" for number in range(0, 600, 3)]


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(StorageError, match="cannot be created"):
        saved(str(tmp_path / "missing"))
    assert list(tmp_path.iterdir()) == []


def test_objects_too():
    memory = fsspec.filesystem("memory")
    memory.pipe("/needs/data", os.urandom(1 << 16))
    spec = ProbeSpec("memory://needs", 0.5, (4096,), most_in_flight=1, feed_seconds=0.2,
                     write_bytes=100_000, code_files=5)  # fmt: skip
    try:
        result = probe(open_target("memory://needs"), spec)
        assert result.needs is not None
        assert result.needs.feed is not None
        assert result.needs.checkpoint is not None
        assert result.needs.code is not None
        assert result.needs.code.files == 5
        assert memory.find("/needs") == ["/needs/data"]
    finally:
        memory.rm("/needs", recursive=True)
