"""The next bytes are fetched while a part is decoded: the batches are the same, but arrive
sooner."""

import os
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.formats.base import PREFETCH_DEPTH, ReadOptions
from pipeprof.loaders.dataset.dataset import FileDataset
from tests.loaders.test_dataset import FORMATS, ids, write
from tests.support.wait import PATIENCE_S, comes

ROWS = 4000


def rows_of(format_name):
    """Return how many rows of a file make several blocks of it."""
    return 800 if format_name == "webdataset" else ROWS


def options_of(format_name, ahead=True):
    """Return options for several splits a file and several blocks a split, where the format has
    them."""
    split_bytes = 0 if format_name == "tfrecord" else 20_000
    block_bytes = 400_000 if format_name == "webdataset" else 8_000  # a row has 3 KiB of a tar
    return ReadOptions(split_bytes=split_bytes, block_bytes=block_bytes, read_ahead=ahead)


def opened(url, format_name, ahead, **making):
    return pipeprof.open_dataset(url, batch_size=100, read=options_of(format_name, ahead), **making)


class RecordingStore:
    """A store that records what it was asked for."""

    def __init__(self, store, one_at_a_time=True):
        self.store, self.one_at_a_time, self.asked = store, one_at_a_time, []

    def read(self, item, ranges):
        self.asked.append((item.path, tuple(ranges)))
        return self.store.read(item, ranges)


class Waits(RecordingStore):
    """Waits with its first answer until a second request comes, or for a long time."""

    def __init__(self, store, one_at_a_time):
        super().__init__(store, one_at_a_time)
        self.go, self.lock = threading.Event(), threading.Lock()
        self.in_flight = self.most = 0
        self.wait_s = 0.1 if one_at_a_time else PATIENCE_S

    def read(self, item, ranges):
        with self.lock:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        if self.in_flight < 2:
            self.go.wait(self.wait_s)
        self.go.set()
        try:
            return super().read(item, ranges)
        finally:
            with self.lock:
                self.in_flight -= 1


def recorded(dataset, kind=RecordingStore, one_at_a_time=True):
    """Return the same data set over a store that records its reads, and that store."""
    store = kind(dataset._plan.store, one_at_a_time)
    plan = replace(dataset._plan, store=store)
    return FileDataset(plan, dataset._batching, dataset._read, dataset.skips), store


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_and_bytes_are_the_same(tmp_path, format_name, shuffle):
    url = write(tmp_path, format_name, rows=rows_of(format_name))
    results = []
    for ahead in (True, False):
        dataset, store = recorded(opened(url, format_name, ahead, shuffle=shuffle))
        results.append((ids(dataset), store.asked))
    assert results[0] == results[1]
    reads = 1 if format_name == "lance" else 2  # its pages are long
    assert len(results[0][1]) >= 3 * reads, "several reads a file"


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("one_at_a_time", [True, False])
def test_two_reads_are_in_flight_where_the_store_answers_both(tmp_path, format_name, one_at_a_time):
    """The store is also asked for the same bytes, once."""
    url = write(tmp_path, format_name, rows=rows_of(format_name))
    dataset, store = recorded(opened(url, format_name, True), Waits, one_at_a_time)
    plain, one_by_one = recorded(opened(url, format_name, False))
    assert ids(dataset) == ids(plain)
    assert store.most == (1 if one_at_a_time else PREFETCH_DEPTH)
    assert sorted(store.asked) == sorted(one_by_one.asked)


def test_very_small_objects_are_not_all_fetched_at_once(tmp_path):
    """Their number bounds what is fetched ahead, because their bytes would not."""
    url = write(tmp_path, "tfrecord", files=50, rows=2)
    dataset, store = recorded(pipeprof.open_dataset(url, batch_size=2))
    batches = iter(dataset)
    next(batches)
    assert comes(lambda: len(store.asked) > 1 + PREFETCH_DEPTH)
    time.sleep(0.05)
    assert len(store.asked) <= 1 + 2 * PREFETCH_DEPTH
    assert len(ids(batches)) == 98
    assert len(store.asked) == 50
    batches.close()


def test_a_row_that_ends_far_beyond_its_split_costs_nothing_twice(tmp_path):
    """Its end is not known in advance, so the next split's bytes are fetched meanwhile."""
    rows = [f"{number},{'x' * 30_000}\n" for number in range(20)]
    (tmp_path / "long.csv").write_text("id,text\n" + "".join(rows))
    results = []
    for ahead in (True, False):
        dataset, store = recorded(opened(str(tmp_path), "csv", ahead))
        assert ids(dataset) == list(range(20))
        results.append(sorted(store.asked))
    assert results[0] == results[1]


@pytest.mark.parametrize("format_name", FORMATS)
def test_repeating_runs_on_from_one_epoch_into_the_next(tmp_path, format_name):
    rows = rows_of(format_name)
    url = write(tmp_path, format_name, files=1, rows=rows)
    batches = iter(opened(url, format_name, True, repeat=True, shuffle=True))
    epochs = [ids(next(batches) for _ in range(rows // 100)) for _ in range(3)]
    batches.close()
    assert [sorted(epoch) for epoch in epochs] == [list(range(rows))] * 3
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_in_workers_too(tmp_path, format_name, workers):
    url = write(tmp_path, format_name, rows=500)
    dataset = opened(url, format_name, True)
    loader = DataLoader(
        dataset,
        batch_size=None,
        num_workers=workers,
        multiprocessing_context="spawn" if dataset.unforkable else "fork",
    )
    assert sorted(ids(loader)) == list(range(1500))


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("ahead", [True, False])
def test_the_next_bytes_are_asked_for_before_the_last_are_used_up(tmp_path, format_name, ahead):
    """In the middle of the first part's batches only a second thread can ask for more."""
    url = write(tmp_path, format_name, rows=rows_of(format_name))
    dataset, store = recorded(opened(url, format_name, ahead))
    batches = iter(dataset)
    next(batches)
    blocks = 2 if format_name == "csv" else 1  # that are decoded at a time
    wanted = blocks * (1 + PREFETCH_DEPTH) if ahead else blocks
    assert comes(lambda: len(store.asked) >= blocks + (PREFETCH_DEPTH if ahead else 0))
    time.sleep(0.05)
    assert len(store.asked) <= wanted, "and what is ahead is bounded"
    batches.close()


@pytest.mark.timed
@pytest.mark.parametrize("ahead", [True, False])
def test_only_what_is_waited_for_is_reading(tmp_path, monkeypatch, ahead):
    def table(first, rows):
        return pa.record_batch({"id": pa.array(range(first, first + rows))})

    url = write(tmp_path, "parquet", files=6, rows=100, table=table)
    dataset, preadv = opened(url, "parquet", ahead), os.preadv

    def slowly(*arguments):
        time.sleep(0.03)
        return preadv(*arguments)

    monkeypatch.setattr("os.preadv", slowly)
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None))
    for _ in loader:
        time.sleep(0.08)  # the step
    log = loader.recording().batches
    rest_s = sum(log.read_s[1:])
    assert log.read_s[0] >= 0.03, "nothing came before the first"
    assert sum(log.requests) == 6 * 2, "a footer and a row group, side by side"
    assert (rest_s < 2.5 * 0.03) if ahead else (rest_s >= 5 * 0.03)
