"""Each request that a data set makes through fsspec, noted by itself: how many, how large."""

import asyncio
from math import isnan
from time import sleep

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.requests import Note, begin_noting, end_noting, pending_notes
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.storage import open_store


@pytest.fixture
def tally():
    """A batch is being made, and profiled."""
    begin_noting()
    with reads_recorded(), tallied(Tally(note_requests=True)) as tally:
        yield tally
    end_noting()


def noted() -> list[Note]:
    notes = list(pending_notes)
    pending_notes.clear()
    return notes


def sizes() -> list[int]:
    return [note[3] for note in noted()]


class Plain(fsspec.AbstractFileSystem):
    """Gives whole objects of 100 bytes, after 2 ms."""

    protocol = "plain"
    cachable = False

    def cat_file(self, path, start=None, end=None, **options):
        sleep(0.002)
        if path == "gone":
            raise FileNotFoundError(path)
        return bytes(100)[start:end]


class Buffered(fsspec.AbstractFileSystem):
    """Its files fetch blocks of 64 bytes."""

    protocol = "buffered"
    cachable = False

    def _open(self, path, mode="rb", **options):
        return Blocks(self, path, block_size=64, size=1000, cache_type="readahead")


class Blocks(fsspec.spec.AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return bytes(end - start)


class Concurrent(AsyncFileSystem):
    """Answers each after as many milliseconds as it has bytes."""

    protocol = "concurrent"
    cachable = False

    async def _cat_file(self, path, start=None, end=None, **options):
        await asyncio.sleep((end - start) / 1000)
        return bytes(end - start)


def test_an_object_is_a_request(tally):
    assert len(Plain().cat_file("a")) == 100
    [(start_s, first_byte_s, end_s, size, retries, throttled, failed)] = noted()
    assert (size, retries, throttled, failed) == (100, 0, 0, False)
    assert end_s - start_s >= 0.002
    assert isnan(first_byte_s)
    assert (tally.requests, tally.bytes) == (1, 100)
    assert tally.store_s >= 0.002
    assert tally.store_cpu_s < tally.store_s


def test_one_that_fails_is_noted_as_that(tally):
    with pytest.raises(FileNotFoundError):
        Plain().cat_file("gone")
    assert [note[6] for note in noted()] == [True]


def test_a_file_notes_what_it_fetches_and_not_what_its_cache_serves(tally):
    with Buffered().open("a", "rb") as file:
        for _ in range(6):
            file.read(20)
    assert sizes() == [20 + 64, 16 + 64], "what was asked for, less what was there, and a block"
    assert (tally.requests, tally.bytes) == (2, 120)
    assert 0 < tally.store_s < tally.seconds["read"], "what the cache serves waits for nobody"


def test_requests_beside_each_other_are_told_one_by_one(tally):
    answers = Concurrent().cat_ranges(["a"] * 3, [0, 0, 0], [10, 20, 30])
    assert [len(answer) for answer in answers] == [10, 20, 30]
    notes = sorted(noted(), key=lambda note: note[3])
    assert [note[3] for note in notes] == [10, 20, 30]
    for start_s, _, end_s, size, *_ in notes:
        assert end_s - start_s >= size / 1000
    together = max(note[2] for note in notes) - min(note[0] for note in notes)
    assert together < sum(note[2] - note[0] for note in notes), "beside each other"
    assert tally.requests == 3


def test_a_store_of_ours_notes_each_once(tally):
    MemoryFileSystem.store.clear()
    with fsspec.open("memory://noted/a", "wb") as file:
        file.write(bytes(1000))
    pending_notes.clear()
    store = open_store("memory://noted/a")
    [item] = store.find("memory://noted/a")
    pending_notes.clear()
    tally.store_s = 0.0
    store.read(item, [(0, 100), (500, 50)])
    assert sorted(sizes()) == [50, 100]
    MemoryFileSystem.store.clear()


def test_nothing_is_noted_where_no_batch_is_made():
    begin_noting()
    with reads_recorded():
        Plain().cat_file("a")
        with tallied(Tally()):
            Plain().cat_file("a")
            Concurrent().cat_file("a", 0, 1)
    assert noted() == []
    end_noting()
