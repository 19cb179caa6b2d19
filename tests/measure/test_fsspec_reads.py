"""Reads through fsspec count as stage `read`: once, with the requests that the store saw."""

import builtins
import io
import sys
import threading
import time
import uuid

import fsspec
import pytest
from fsspec.implementations import cached, local, memory
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.stage_timer import Tally, stage, tallied
from pipeprof.model import Stage

DATA = bytes(range(250)) * 40


@pytest.fixture
def watched():
    """As in the main process."""
    with reads_recorded():
        yield


@pytest.fixture
def tally():
    with tallied(Tally()) as mine:
        yield mine


class Slow(AbstractFileSystem):
    """A store that takes 20 ms for each request."""

    protocol = "slow"
    cachable = False

    def info(self, path, **options):
        return {"name": path, "size": len(DATA), "type": "file"}

    def _open(self, path, mode="rb", **options):
        return SlowFile(self, path, mode, cache_type="readahead", **options)


class SlowFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        time.sleep(0.02)
        return DATA[start:end]


@pytest.fixture
def memory_url():
    url = f"memory://{uuid.uuid4().hex}"
    memory.MemoryFileSystem().pipe_file(url, DATA)
    return url


@pytest.fixture
def local_url(tmp_path):
    (tmp_path / "data").write_bytes(DATA)
    return f"file://{tmp_path}/data"


# -- what is counted ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["memory_url", "local_url"])
def test_whatever_way_a_file_is_read(form, watched, request):
    url, start = request.getfixturevalue(form), time.perf_counter()
    fs, path = fsspec.core.url_to_fs(url)
    with tallied(Tally()) as opened, fsspec.open(url) as file:
        assert file.read() == DATA
    with tallied(Tally()) as text, fsspec.open(url, "rt", encoding="latin-1", newline="") as file:
        assert file.read() == DATA.decode("latin-1")
    with tallied(Tally()) as whole:
        assert fs.cat(path) == fs.cat_file(path) == DATA
    with tallied(Tally()) as parts:
        assert fs.cat_ranges([path] * 3, [0, 10, 20], [10, 30, 40]) == [
            DATA[:10],
            DATA[10:30],
            DATA[20:40],
        ]
    assert (opened.bytes, opened.requests) == (len(DATA), 1)
    assert (text.bytes, text.requests) == (len(DATA), pytest.approx(2, abs=1))
    assert (whole.bytes, whole.requests) == (2 * len(DATA), 2)
    assert (parts.bytes, parts.requests) == (50, 3)
    took = [tally.seconds[Stage.READ] for tally in (opened, text, whole, parts)]
    assert min(took) > 0
    assert sum(took) <= time.perf_counter() - start


def test_a_read_that_the_files_cache_serves_is_no_request(watched, tally):
    start = time.perf_counter()
    with Slow().open("x", block_size=1000) as file:
        for _ in range(30):
            assert len(file.read(100)) == 100
    assert (tally.bytes, tally.requests) == (3000, 3)
    assert 0.06 <= tally.seconds[Stage.READ] <= time.perf_counter() - start


def test_what_fsspec_reads_for_itself_counts_once(watched, tally):
    fs = DirFileSystem("folder", fs=Slow())
    start = time.perf_counter()
    assert fs.cat_file("x", 0, 4000) == DATA[:4000]
    assert (tally.bytes, tally.requests) == (4000, 1)
    assert 0.02 <= tally.seconds[Stage.READ] <= time.perf_counter() - start


def test_a_class_that_is_made_later_is_seen(watched, tally):
    class Later(SlowFile):
        def _fetch_range(self, start, end):
            return DATA[start:end]

        def read(self, length=-1):
            return super().read(length)

    with Later(Slow(), "x") as file:
        assert file.read(200) == DATA[:200]
    assert (tally.bytes, tally.requests) == (200, 1)


def test_a_download_counts_what_has_landed(memory_url, watched, tally, tmp_path):
    fs = fsspec.filesystem("memory")
    fs.get_file(memory_url, str(tmp_path / "copy"))
    assert (tally.bytes, tally.requests) == (len(DATA), 1)


def test_a_copy_in_fsspecs_cache_is_read_from_there(memory_url, watched, tmp_path):
    counted = []
    for _ in range(2):
        with (
            tallied(Tally()) as tally,
            fsspec.open(
                f"simplecache::{memory_url}", simplecache={"cache_storage": str(tmp_path)}
            ) as file,
        ):
            assert file.read() == DATA
        counted.append((tally.bytes, tally.requests))
    assert counted == [(len(DATA), 1)] * 2


def test_reading_is_no_part_of_the_stage_around_it(watched, tally):
    start = time.perf_counter()
    with stage("decode"):
        Slow().cat_file("x")
        time.sleep(0.03)
    took = time.perf_counter() - start
    assert tally.seconds[Stage.READ] >= 0.02
    assert tally.seconds[Stage.DECODE] >= 0.03
    assert tally.seconds[Stage.READ] + tally.seconds[Stage.DECODE] <= took


def test_writing_is_no_reading(watched, tally, tmp_path):
    for url in (f"memory://{uuid.uuid4().hex}", f"file://{tmp_path}/new"):
        with fsspec.open(url, "wb") as file:
            file.write(DATA)
    assert tally.seconds == {}


def test_an_error_is_the_users_and_its_time_is_counted(watched):
    class Broken(Slow):
        def cat_file(self, path, **options):
            time.sleep(0.02)
            raise ConnectionResetError("by peer")

    with tallied(Tally()) as tally, pytest.raises(ConnectionResetError, match="by peer"):
        Broken().cat_file("x")
    assert (tally.bytes, tally.requests) == (0, 1)
    assert tally.seconds[Stage.READ] >= 0.02
    with tallied(Tally()) as tally:  # and the next batch is recorded as ever
        Slow().cat_file("x")
    assert tally.bytes == len(DATA)


def test_nothing_is_recorded_for_those_who_make_no_batch(memory_url, watched, tally):
    read = fsspec.filesystem("memory").cat_file
    other = threading.Thread(target=read, args=[memory_url])
    other.start()
    other.join()
    assert tally.seconds == {}


# -- what is left as it was ---------------------------------------------------------------------


def state():
    """All that is replaced anywhere."""
    owners = [fsspec.asyn, local, cached, memory, memory.MemoryFile]
    for root in (AbstractFileSystem, AbstractBufferedFile):
        owners += [root, *root.__subclasses__()]
    return [dict(vars(owner)) for owner in owners], list(sys.meta_path), builtins.open, io.open


def test_everything_is_put_back():
    before = state()
    with reads_recorded():
        inside = state()
        with pytest.raises(KeyError), reads_recorded():
            raise KeyError
        assert state() == inside != before
    assert state() == before
    assert inside[2:] == before[2:]  # Python's own is not touched


def test_a_method_that_somebody_else_replaced_stays_theirs(monkeypatch):
    monkeypatch.setattr(memory.MemoryFileSystem, "cat_file", memory.MemoryFileSystem.cat_file)
    theirs = lambda self, path: b"theirs"  # noqa: E731
    with reads_recorded():
        memory.MemoryFileSystem.cat_file = theirs
    assert memory.MemoryFileSystem.cat_file is theirs


def test_methods_keep_their_names(watched):
    assert AbstractBufferedFile.read.__qualname__ == "AbstractBufferedFile.read"
    assert fsspec.asyn.sync.__doc__.strip().startswith("Make loop run coroutine")
