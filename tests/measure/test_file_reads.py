"""The watched `open` gives what `open` gives, and counts each system call that reads."""

import builtins
import gc
import inspect
import io
import os
import pickle
import shutil
import warnings

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeprof.measure.patches.file_reads import holders_of_open, patch_open, recording_open
from pipeprof.measure.stage_timer import Tally, tallied
from tests.support.leaks import descriptors

TEXT = "name,value\r\nMüller,1\n\nlast line without an end"
MODES = ["r", "rb", "rt", "tr", "br", "w", "a+b", "r+", "x", "", "b", "rw", "rbt", "rr", "U", None]
PLACES = ["file", "file as Path", "file as bytes", "folder", "missing", "null", "\0", "", 1.5, None]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    return tmp_path_factory.mktemp("room")


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


def test_passes_for_the_builtin(patched_open):
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
    patch_open(holders_of_open())
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
    gc.freeze()  # what they left otherwise need not be looked at again and again
    try:
        assert warning(recording_open) == warning(io.open)
        assert len(warning(io.open)) == 1
    finally:
        gc.unfreeze()


def test_a_failed_open_leaves_no_descriptor(room):
    path, before = place(room, "file"), descriptors()
    for _ in range(5):
        with pytest.raises(LookupError):
            recording_open(path, encoding="no-such")
    assert not descriptors() - before
