"""The files that the patched `open` gives count each system call that reads."""

import bz2
import gzip
import os
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import numpy
import pytest
from PIL import Image

from pipeprof.measure.stage_timer import Tally, stage, tallied
from pipeprof.model import Stage

UNBUFFERED = pytest.mark.skipif(sys.version_info >= (3, 14), reason="read without a buffer")


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
def test_every_byte_is_counted(files, patched_open, name, reads, again):
    """``again``: bytes that a reader of archives may read more than once, or not at all."""
    start = time.perf_counter()
    with tallied(Tally()) as tally:
        reads(files / name)
    took = time.perf_counter() - start
    assert tally.bytes == pytest.approx((files / name).stat().st_size, abs=again)
    assert tally.requests >= 1
    assert 0 < tally.seconds[Stage.READ] <= took


def test_a_request_is_a_system_call(files, patched_open):
    with tallied(Tally()) as tally, open(files / "data", "rb", buffering=1000) as opened:
        for _ in range(300):
            opened.read(10)
        assert (tally.bytes, tally.requests) == (3000, 3)
        opened.seek(99_990)
        opened.read(100)
    assert (tally.bytes, tally.requests) == (3010, 4)  # the end of the file is none


@pytest.mark.timed
def test_the_time_is_that_of_the_system_call(tmp_path, patched_open):
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


def test_opening_and_each_read_are_clocked(files, patched_open):
    with tallied(Tally()) as tally:
        whole(files / "data")
    assert (tally.charges, tally.bytes, tally.requests) == (2, 100_000, 1)


def test_nothing_is_recorded_for_those_who_make_no_batch(files, patched_open):
    with tallied(Tally()) as tally:
        other = threading.Thread(target=whole, args=[files / "data"])
        other.start()
        other.join()
    assert whole(files / "data")
    assert tally.seconds == {}
