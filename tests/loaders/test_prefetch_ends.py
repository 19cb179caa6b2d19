"""Prefetching at an error, at the end of a pass and at a fork."""

import os
import re
import threading
import time

import pytest
import torch

import pipeprof
from pipeprof import formats
from pipeprof.errors import CorruptData, StorageError
from pipeprof.formats.base import PREFETCH_DEPTH, ReadOptions
from tests.loaders.test_dataset import FORMATS, ids, write
from tests.loaders.test_prefetch import ROWS, RecordingStore, opened, recorded, rows_of
from tests.support.leaks import threads
from tests.support.wait import PATIENCE_S, comes


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("format_name", FORMATS)
def test_errors_come_where_they_came_before(tmp_path, format_name, ahead):
    url = write(tmp_path, format_name, rows=1000)
    dataset = opened(url, format_name, ahead)
    name = f"part-1{formats.get(format_name).suffixes[0]}"
    os.truncate(tmp_path / name, 3000)
    seen = []
    with pytest.raises(StorageError, match=rf"{re.escape(name)}.*cut short or replaced"):
        seen.extend(batch["id"].tolist() for batch in dataset)
    seen = [number for batch in seen for number in batch]
    assert seen[:1000] == list(range(1000))
    assert all(number < 2000 for number in seen)


def test_damage_ahead_is_reported_when_its_split_is_read(tmp_path):
    url = write(tmp_path, "tfrecord", rows=200)
    file = tmp_path / "part-1.tfrecord"
    dataset = opened(url, "tfrecord", True)
    file.write_bytes(b"\0" * file.stat().st_size)
    batches = iter(dataset)
    assert ids([next(batches), next(batches)]) == list(range(200))
    with pytest.raises(CorruptData, match=r"part-1\.tfrecord"):
        next(batches)


@pytest.mark.parametrize("damaged", [0, 1])
def test_what_follows_damage_is_read_once(tmp_path, damaged):
    """The decoder of the damaged file asks for nothing more of it, although that was expected."""
    url = write(tmp_path, "tfrecord", rows=ROWS)
    dataset, store = recorded(opened(url, "tfrecord", True, on_error="skip"))
    with open(tmp_path / f"part-{damaged}.tfrecord", "r+b") as file:
        file.write(b"\xff" * 8)
    with pytest.warns(UserWarning, match=f"part-{damaged}"):
        read = ids(dataset)
    assert len(read) == 2 * ROWS
    assert len(store.asked) == len(set(store.asked))


@pytest.mark.parametrize("left", [True, False])
def test_its_thread_ends_with_the_pass(tmp_path, left):
    before = threads()
    batches = iter(opened(write(tmp_path, "csv", rows=ROWS), "csv", True))
    next(batches)
    assert any("pipeprof-ahead" in each.name for each in threads() - before)
    if left:
        batches.close()
    else:
        list(batches)
    assert comes(lambda: not ahead_threads(before))


def test_whoever_leaves_waits_for_no_read_in_flight(tmp_path):
    class Hangs(RecordingStore):
        go = threading.Event()

        def read(self, item, ranges):
            if len(self.asked) >= 2:  # the blocks that CSV parses first
                self.go.wait(PATIENCE_S)
            return super().read(item, ranges)

    before = threads()
    dataset, store = recorded(opened(write(tmp_path, "csv", rows=ROWS), "csv", True), Hangs, False)
    batches = iter(dataset)
    next(batches)
    start = time.monotonic()
    batches.close()
    assert time.monotonic() - start < PATIENCE_S / 2
    store.go.set()
    assert comes(lambda: not ahead_threads(before))
    assert len(store.asked) <= 2 + PREFETCH_DEPTH, "what had not begun is not read"


def test_where_nothing_follows_what_is_read_first_there_is_no_thread(tmp_path):
    before = threads()
    url = write(tmp_path, "parquet", files=1, rows=ROWS)
    for split_bytes, ahead in ((0, False), (1, True)):  # all in one read, or in several
        options = ReadOptions(split_bytes=split_bytes)
        dataset = pipeprof.open_dataset(url, batch_size=10, read=options)
        assert (dataset.splits > 1) is ahead
        batches = iter(dataset)
        next(batches)
        assert bool(ahead_threads(before)) is ahead
        list(batches)
        assert comes(lambda: not ahead_threads(before))


def ahead_threads(before):
    return [each for each in threads() - before if "ahead" in each.name]


@pytest.mark.parametrize("format_name", FORMATS)
def test_tensors_that_are_kept_do_not_change(tmp_path, format_name):
    """They may be views of memory that was read into."""
    rows = rows_of(format_name)
    url = write(tmp_path, format_name, files=6, rows=rows)
    kept = [batch["price"] for batch in opened(url, format_name, True)]
    whole = torch.cat(kept)
    assert torch.equal(whole, torch.arange(6 * rows, dtype=torch.float32) / 4)


class Locked(RecordingStore):
    """Holds a lock while it reads, as clients of stores do."""

    def __init__(self, store, one_at_a_time):
        super().__init__(store, one_at_a_time)
        self.lock, self.held = threading.Lock(), threading.Event()

    def read(self, item, ranges):
        with self.lock:
            self.held.set()
            time.sleep(0.3)
            return super().read(item, ranges)


def test_a_fork_waits_for_what_is_read_so_that_no_lock_stays_held_in_the_child(tmp_path):
    dataset, store = recorded(opened(write(tmp_path, "csv", rows=ROWS), "csv", True), Locked, False)
    rows = iter(dataset)
    next(rows)
    rows.close()  # what was asked for ahead is still read
    store.held.clear()
    store.held.wait(1)
    child = os.fork()
    if not child:
        os._exit(0 if store.lock.acquire(timeout=PATIENCE_S) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
