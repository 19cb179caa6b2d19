"""Local files are read in concurrent requests of bounded size, into memory that is reused."""

import errno
import os
import threading

import numpy as np
import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.errors import StorageError
from pipeprof.measure import requests
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import ReadOptions
from pipeprof.storage.local import LocalStore
from pipeprof.storage.page_cache import evict, residency, resident_share, warm
from pipeprof.storage.threads import HelperThreads
from tests.support.leaks import threads
from tests.support.requirements import missing
from tests.support.wait import PATIENCE_S, comes

KIB = 1024
SIZE = 3000 * KIB + 123


@pytest.fixture
def content():
    return np.random.default_rng(0).bytes(SIZE)


@pytest.fixture
def file(tmp_path, content):
    (tmp_path / "x.bin").write_bytes(content)
    return str(tmp_path / "x.bin")


def opened(path, **options):
    store = LocalStore(ReadOptions(**options))
    (item,) = store.find(path)
    return store, item


@pytest.fixture(params=[True, False], ids=["in memory", "cold"])
def cached(request, monkeypatch):
    """Whether the kernel reports the file to be in memory."""
    monkeypatch.setattr("pipeprof.storage.local_reads.in_memory", lambda *stretch: request.param)
    return request.param


@pytest.fixture
def cold(monkeypatch):
    monkeypatch.setattr("pipeprof.storage.local_reads.in_memory", lambda *stretch: False)


RANGES = [(0, SIZE), (SIZE - 5, 5), (5000, 300 * KIB), (4096, 4096), (7, 0), (1, 4095)]


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("request_bytes", [7000, 64 * KIB, 2**20])
@pytest.mark.usefixtures("cached")
def test_the_bytes_are_those_of_the_file(file, content, request_bytes, depth, direct):
    store, item = opened(file, request_bytes=request_bytes, queue_depth=depth, direct=direct)
    for _ in range(3):  # memory is used again
        buffers = store.read(item, RANGES)
        for (offset, length), buffer in zip(RANGES, buffers, strict=True):
            assert buffer == content[offset : offset + length]


def test_a_range_is_cut_into_requests_and_each_is_recorded(file, cached):
    store, item = opened(file, request_bytes=100 * KIB)
    requests.begin_noting()
    try:
        with tallied(Tally()) as tally:
            store.read(item, [(0, SIZE), (0, 10)])
        notes = list(requests.pending_notes)
    finally:
        requests.end_noting()
    sizes = [10, SIZE] if cached else [10, 123, *[100 * KIB] * 30]
    assert sorted(size for _, _, _, size, *_ in notes) == sizes
    assert tally.requests == len(notes)
    assert all(start < end for start, _, end, *_ in notes)
    assert tally.bytes == SIZE + 10


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(("depth", "met"), [(4, True), (3, False)])
def test_queue_depth_limits_concurrent_requests(file, monkeypatch, depth, met):
    """Four requests wait for each other, which a queue of three never lets happen."""
    store, item = opened(file, request_bytes=512 * KIB, queue_depth=depth)
    barrier, preadv = threading.Barrier(4), os.preadv

    def together(*arguments):
        barrier.wait(timeout=PATIENCE_S if met else 0.2)
        return preadv(*arguments)

    monkeypatch.setattr("os.preadv", together)
    try:
        store.read(item, [(0, 2000 * KIB)])
    except threading.BrokenBarrierError:
        assert not met
    else:
        assert met


@pytest.mark.usefixtures("cached")
def test_the_error_of_a_shorter_file_names_the_first_missing_byte(file):
    store, item = opened(file, request_bytes=64 * KIB, queue_depth=1)
    os.truncate(file, 100_000)
    with pytest.raises(StorageError, match=r"ended at byte 100,000 .* cut short or replaced"):
        store.read(item, [(0, SIZE)])


def test_a_direct_read_of_a_shorter_file_fails_too(file):
    store, item = opened(file, direct=True)
    os.truncate(file, 100_000)
    with pytest.raises(StorageError, match=r"cut short or replaced"):
        store.read(item, [(50_000, 60_000)])


def address(buffer):
    return np.frombuffer(buffer, np.uint8).ctypes.data


@pytest.mark.usefixtures("cached")
def test_bytes_lie_in_a_cache_line_as_they_do_in_the_file(file):
    store, item = opened(file)
    for (offset, _), buffer in zip(RANGES, store.read(item, RANGES), strict=True):
        assert not len(buffer) or address(buffer) % 64 == offset % 64


def test_memory_is_reused_once_nothing_refers_to_it(file, content):
    def place(offset):
        store, item = opened(file)  # whoever opens a data set again finds the memory of the last
        (buffer,) = store.read(item, [(offset, 700 * KIB)])
        assert buffer == content[offset : 700 * KIB + offset]
        return address(buffer) // 64

    assert len({place(offset) for offset in range(20)}) <= 3


@pytest.mark.parametrize(
    "keep",
    [
        lambda buffer: buffer[10:20],
        lambda buffer: memoryview(buffer)[10:20].cast("B")[:],
        lambda buffer: np.frombuffer(buffer, np.uint8)[10:20],
        lambda buffer: memoryview(pa.py_buffer(buffer).slice(10, 10)),
        lambda buffer: memoryview(pa.BufferReader(buffer).read_buffer(20)[10:]),
    ],
    ids=["slice", "cast", "numpy", "arrow", "arrow reader"],
)
def test_memory_with_a_reference_to_any_part_is_not_reused(file, content, keep):
    store, item = opened(file)
    kept = keep(store.read(item, [(0, 500 * KIB)])[0])
    for offset in range(1, 20):
        store.read(item, [(offset, 500 * KIB)])
    assert bytes(kept) == content[10:20]


@pytest.mark.usefixtures("cold")
def test_a_forked_child_reads_for_itself(file, content):
    store, item = opened(file, request_bytes=64 * KIB)
    (held,) = store.read(item, [(0, 2000 * KIB)])  # its threads are not in the child
    child = os.fork()
    if child == 0:
        (buffer,) = store.read(item, [(100, 2900 * KIB)])
        (again,) = store.read(item, [(200, 2000 * KIB)])
        good = buffer == content[100 : 2900 * KIB + 100]
        good = good and again == content[200 : 2000 * KIB + 200]
        os._exit(0 if good and held == content[: 2000 * KIB] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert held == content[: 2000 * KIB]


@pytest.fixture
def read_threads():
    """Return the reading threads that started in this test."""
    before = threads()
    return lambda: [
        each for each in threads()
        if each.name == "pipeprof-read" and each not in before
    ]  # fmt: skip


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(("size", "threads"), [(2**20, 0), (2**20 + 1, 2)])
def test_a_read_of_at_most_a_megabyte_starts_no_thread(file, monkeypatch, size, threads):
    """Planning a data set must leave no thread, because workers are forked after it."""
    started, helps = [], HelperThreads._help

    def seen(helpers):
        started.append(threading.current_thread())
        helps(helpers)

    monkeypatch.setattr(HelperThreads, "_help", seen)
    store, item = opened(file)
    store.read(item, [(0, size)])
    assert len(started) == threads
    assert comes(lambda: not any(thread.is_alive() for thread in started))


def test_threads_end_when_they_idle_and_come_back(read_threads):
    helpers, done = HelperThreads(idle_s=0.05), []
    for _ in range(2):
        helpers.run(lambda: done.append(threading.get_ident()), 3)
        assert len(read_threads()) <= 3
        assert comes(lambda: not read_threads())
    assert len(done) == 8


def test_threads_are_few_however_often_they_are_used(read_threads):
    helpers = HelperThreads()
    for _ in range(200):
        helpers.run(lambda: None, 2)
    assert len(read_threads()) <= 2
    assert comes(lambda: not read_threads())


@pytest.fixture
def on_disk(file):
    if residency([file]).reason:
        missing(f"a disk of this machine's own: {residency([file]).reason}")
    evict([file])
    return file


def test_direct_reads_leave_nothing_in_the_page_cache(on_disk):
    store, item = opened(on_disk, direct=True)
    store.read(item, RANGES)
    if store.notes:
        missing(f"a disk that allows direct reads: {store.notes}")
    assert resident_share([on_disk]) < 0.01


@pytest.mark.parametrize("where", ["open", "preadv"])
def test_refused_direct_reads_are_replaced_and_noted(file, content, monkeypatch, where):
    store, item = opened(file, direct=True)
    refused = getattr(os, where)

    def refuse(*arguments, **options):
        if arguments[1] & os.O_DIRECT if where == "open" else not store.notes:
            raise OSError(errno.EINVAL, "Invalid argument")
        return refused(*arguments, **options)

    monkeypatch.setattr(f"os.{where}", refuse)
    assert store.read(item, [(3, 200 * KIB)])[0] == content[3 : 200 * KIB + 3]
    assert "refuses them" in store.notes[0]


def test_a_profile_notes_that_direct_reads_were_refused(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a\n1\n")
    allowed = os.open

    def refuse(path, flags, *more, **options):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return allowed(path, flags, *more, **options)

    monkeypatch.setattr("os.open", refuse)
    dataset = pipeprof.open_dataset(str(tmp_path), read=ReadOptions(direct=True))
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None, num_workers=1))
    list(loader)
    assert "refuses them" in "".join(loader.profile().notes)


def test_with_forget_data_is_evicted_after_it_was_read(on_disk):
    warm([on_disk])
    store, item = opened(on_disk, forget=True)
    store.read(item, [(0, SIZE // 2)])
    assert resident_share([on_disk]) < 0.52
    store.read(item, [(SIZE // 2, SIZE - SIZE // 2)])
    assert resident_share([on_disk]) < 0.01
