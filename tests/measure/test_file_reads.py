"""The watched `open` gives what `open` gives, and counts each system call that reads."""

import builtins
import bz2
import gc
import gzip
import inspect
import io
import os
import pickle
import shutil
import sys
import tarfile
import threading
import time
import warnings
import zipfile
from pathlib import Path

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st
from PIL import Image

from pipeprof.measure.patches.file_reads import _holders, patch_open, recording_open
from pipeprof.measure.stage_timer import Tally, stage, tallied
from pipeprof.model import Stage
from tests.support.leaks import descriptors

TEXT = "name,value\r\nMüller,1\n\nlast line without an end"
MODES = ["r", "rb", "rt", "tr", "br", "w", "a+b", "r+", "x", "", "b", "rw", "rbt", "rr", "U", None]
PLACES = ["file", "file as Path", "file as bytes", "folder", "missing", "null", "\0", "", 1.5, None]

UNBUFFERED = pytest.mark.skipif(sys.version_info >= (3, 14), reason="read without a buffer")


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return tmp_path_factory.mktemp("room")


@pytest.fixture
def watched(monkeypatch):
    """As in a worker, for one test."""
    for owner, name in _holders():
        monkeypatch.setattr(owner, name, io.open)
    patch_open()


def place(room, which):
    if not isinstance(which, str) or which in ("", "\0"):
        return which
    if which == "null":
        return os.devnull
    shutil.rmtree(room)
    room.mkdir()
    (room / "file").write_bytes(TEXT.encode())
    (room / "folder").mkdir()
    name, _, form = which.partition(" as ")
    path = room / name
    return {"Path": path, "bytes": os.fsencode(path)}.get(form, str(path))


def outcome(open_, file, *arguments, **options):
    """Everything that a user can see of an opened file, or of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning is something to see
            opened = open_(file, *arguments, **options)
    except Exception as error:
        return type(error), str(error), getattr(error, "errno", 0), getattr(error, "filename", 0)
    with opened:
        seen = [type(opened), repr(opened), opened.name, opened.mode, opened.closed]
        seen += [opened.readable(), opened.writable(), opened.seekable(), opened.isatty()]
        if isinstance(opened, io.TextIOWrapper):
            seen += [opened.encoding, opened.errors, opened.line_buffering, opened.newlines]
            seen += [type(opened.buffer), opened.buffer.mode, opened.buffer.name]
        buffered = getattr(opened, "buffer", opened)
        seen += [buffered.__sizeof__()]  # the size of its buffer, too
        if isinstance(buffered, io.BufferedReader):
            raw = buffered.raw
            seen += [isinstance(raw, io.FileIO), raw.mode, raw.name, raw.closefd, raw.fileno() > 2]
        seen += contents(opened)
    return [*seen, opened.closed]


def contents(opened):
    if not opened.readable() or opened.name == os.devnull:
        return []
    try:
        return [opened.readline(), opened.tell(), opened.read(3), opened.readlines(), opened.read()]
    except Exception as error:  # not in this encoding
        return [type(error), str(error)]


@pytest.mark.parametrize("mode", ["r", "rt", "tr", "rb", "br"])
@pytest.mark.parametrize("buffering", [-1, 2, 100])
def test_reads_as_open_does(room, mode, buffering):
    for which in ("null", "file as bytes", "file as Path", "file"):
        path = place(room, which)
        assert outcome(recording_open, path, mode, buffering) == outcome(
            io.open, path, mode, buffering
        )
    for encoding in (None, "utf-8", "latin-1", "ascii", "utf-16"):
        for errors in (None, "replace"):
            for newline in (None, "", "\n", "\r", "\r\n"):
                text = () if "b" in mode else (encoding, errors, newline)
                ours = outcome(recording_open, path, mode, buffering, *text)
                assert ours == outcome(io.open, path, mode, buffering, *text)


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    which=st.sampled_from(PLACES),
    mode=st.sampled_from(MODES),
    buffering=st.sampled_from([-1, 0, 1, 2, 100, -2, True, 3.5, None]) | st.just(-1),
    encoding=st.sampled_from([None, "utf-8", "ascii", "utf-16", "locale", "no-such", 5]),
    errors=st.sampled_from([None, "ignore", "strict", "no-such", 5]),
    newline=st.sampled_from([None, "", "\n", "\r\n", "x", 5]),
)
def test_opens_and_fails_as_open_does(room, which, mode, buffering, encoding, errors, newline):
    arguments = mode, buffering, encoding, errors, newline
    with tallied(Tally()):
        ours = outcome(recording_open, place(room, which), *arguments)
    assert ours == outcome(io.open, place(room, which), *arguments)


@pytest.mark.parametrize("mode", ["r", "rb"])
@pytest.mark.parametrize(
    "options", [{}, {"buffering": 0}, {"closefd": False}, {"opener": os.open}], ids=str
)
def test_odd_ways_to_open_are_those_of_open(room, mode, options):
    path = place(room, "file")
    assert outcome(recording_open, path, mode, **options) == outcome(io.open, path, mode, **options)


def test_a_terminal_is_read_by_lines():
    ends = os.openpty()
    for mode, buffering in (("r", -1), ("r", 100), ("rb", -1)):
        name = os.ttyname(ends[1])
        with recording_open(name, mode, buffering) as ours, open(name, mode, buffering) as real:
            assert ours.isatty() is real.isatty() is True
            assert getattr(ours, "line_buffering", 0) == getattr(real, "line_buffering", 0)
            assert ours.__sizeof__() == real.__sizeof__()
    for end in ends:
        os.close(end)


def test_a_descriptor_stays_with_the_real_open(room):
    descriptor = os.open(place(room, "file"), os.O_RDONLY)
    with recording_open(descriptor, "rb") as opened:
        assert type(opened.raw) is io.FileIO


def test_passes_for_the_builtin(watched):
    class Reader:
        open = open  # no method, as the builtin would not be one

    assert open is io.open is Reader().open is recording_open
    assert callable(open)
    assert (open.__name__, open.__qualname__, repr(open)) == (
        "open",
        "open",
        "<built-in function open>",
    )
    assert "Open file and return a stream" in open.__doc__
    assert list(inspect.signature(open).parameters)[:3] == ["file", "mode", "buffering"]
    assert pickle.loads(pickle.dumps(open)) is open


def test_an_open_that_somebody_replaced_is_left_alone(monkeypatch):
    theirs = lambda *arguments: None  # noqa: E731
    monkeypatch.setattr(builtins, "open", theirs)
    patch_open()
    assert builtins.open is theirs
    assert io.open is not recording_open


@pytest.mark.parametrize("mode", ["r", "rb"])
def test_a_file_left_open_warns_as_ever(room, mode):
    def warning(open_):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            open_(path, mode)
            gc.collect()
        return [(found.category, str(found.message)) for found in caught]

    path = place(room, "file")
    gc.collect()  # what other tests left open
    assert warning(recording_open) == warning(io.open)
    assert len(warning(io.open)) == 1


def test_a_failed_open_leaves_no_descriptor(room):
    path, before = place(room, "file"), descriptors()
    for _ in range(5):
        with pytest.raises(LookupError):
            recording_open(path, encoding="no-such")
    assert not descriptors() - before


def whole(path):
    with open(path, "rb") as opened:
        return opened.read()


def pieces(path):
    with open(path, "rb") as opened:
        return opened.read(1), opened.readinto(bytearray(20_000)), opened.peek(), opened.read()


def pixels(path):
    with Image.open(path) as image:
        return image.tobytes()


def ungzipped(path):
    with gzip.open(path) as opened:
        return opened.read()


def unbzipped(path):
    with bz2.open(path) as opened:
        return opened.read()


def unpacked(path):
    with tarfile.open(path) as archive:
        return archive.extractfile("data").read()


def unzipped(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("data")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One of each kind, of some 100 kB that do not compress."""
    folder = tmp_path_factory.mktemp("files")
    data = numpy.random.default_rng(0).integers(0, 256, 100_000, numpy.uint8)
    (folder / "data").write_bytes(data)
    numpy.save(folder / "npy.npy", data)
    Image.fromarray(data.reshape(200, 500)).save(folder / "png", "png")
    with gzip.open(folder / "gz", "wb") as packed:
        packed.write(data)
    with bz2.open(folder / "bz2", "wb") as packed:
        packed.write(data)
    with tarfile.open(folder / "tar", "w") as archive:
        archive.add(folder / "data", "data")
    with zipfile.ZipFile(folder / "zip", "w") as archive:
        archive.write(folder / "data", "data")
    return folder


@pytest.mark.parametrize(
    ("name", "reads", "again"),
    [
        ("data", whole, 0),
        pytest.param("data", Path.read_bytes, 0, marks=UNBUFFERED),
        ("data", pieces, 0),
        ("png", pixels, 0),
        ("gz", ungzipped, 0),
        ("bz2", unbzipped, 0),
        ("tar", unpacked, 20_000),
        ("zip", unzipped, 20_000),
    ],
)
def test_every_byte_is_counted(files, watched, name, reads, again):
    """``again``: bytes that a reader of archives may read more than once, or not at all."""
    start = time.perf_counter()
    with tallied(Tally()) as tally:
        reads(files / name)
    took = time.perf_counter() - start
    assert tally.bytes == pytest.approx((files / name).stat().st_size, abs=again)
    assert tally.requests >= 1
    assert 0 < tally.seconds[Stage.READ] <= took


def test_a_request_is_a_system_call(files, watched):
    with tallied(Tally()) as tally, open(files / "data", "rb", buffering=1000) as opened:
        for _ in range(300):
            opened.read(10)
        assert (tally.bytes, tally.requests) == (3000, 3)
        opened.seek(99_990)
        opened.read(100)
    assert (tally.bytes, tally.requests) == (3010, 4)  # the end of the file is none


@pytest.mark.timed
def test_the_time_is_that_of_the_system_call(tmp_path, watched):
    os.mkfifo(tmp_path / "pipe")

    def late():
        with open(tmp_path / "pipe", "wb") as pipe:
            time.sleep(0.1)
            pipe.write(b"12345")

    writer = threading.Thread(target=late)
    writer.start()
    with tallied(Tally()) as tally, stage("decode"), open(tmp_path / "pipe", "rb") as opened:
        time.sleep(0.02)
        assert opened.read() == b"12345"
    writer.join()
    assert tally.bytes == 5
    assert 0.06 <= tally.seconds[Stage.READ] < 0.5
    assert 0.02 <= tally.seconds[Stage.DECODE] < 0.5


def test_opening_and_each_read_are_clocked(files, watched):
    with tallied(Tally()) as tally:
        whole(files / "data")
    assert (tally.charges, tally.bytes, tally.requests) == (2, 100_000, 1)


def test_nothing_is_recorded_for_those_who_make_no_batch(files, watched):
    with tallied(Tally()) as tally:
        other = threading.Thread(target=whole, args=[files / "data"])
        other.start()
        other.join()
    assert whole(files / "data")
    assert tally.seconds == {}
