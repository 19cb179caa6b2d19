"""Memory to read into: whose it is, how much is kept, and for how long."""

import os
import re
from pathlib import Path

import numpy as np

from pipeprof.storage.buffers import SHARED, Buffers

KIB = 1024


def address(buffer):
    return np.frombuffer(buffer, np.uint8).ctypes.data


class Reader:
    """Whoever takes memory."""


def test_who_reads_after_another_finds_its_memory():
    buffers, first, second = Buffers(), Reader(), Reader()
    place = address(buffers.serve(first).take(500 * KIB))
    del first
    assert address(buffers.serve(second).take(500 * KIB)) == place


def test_what_is_kept_for_use_again_is_bounded():
    buffers = Buffers()
    held = [buffers.take(40 * 2**20) for _ in range(6)]
    assert sum(map(len, buffers._kept)) < 2 * 50 * 2**20
    assert len({address(view) for view in held}) == 6
    assert len(buffers.take(200 * KIB).obj) < 512 * KIB, "a small read keeps no large memory"


def test_each_reader_may_have_as_much_in_use_as_if_it_were_alone():
    buffers, readers = Buffers(), [Reader() for _ in range(3)]
    for each in readers:
        buffers.serve(each)
    held = [buffers.take(300 * KIB) for _ in range(4 * len(readers))]
    places = {address(view) for view in held}
    del held
    again = [buffers.take(300 * KIB) for _ in places]
    assert {address(view) for view in again} == places
    del again, each
    readers.clear()
    assert len(buffers._kept) == 4, "as many as for one, when nobody is left"


def lazily_freed(place):
    """Bytes that the kernel may take, of the map in which that is."""
    freed, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= place < int(found[2], 16)
        elif inside and line.startswith("LazyFree:"):
            freed += KIB * int(line.split()[1])
    return freed


def test_while_nobody_reads_the_kernel_may_take_what_is_kept():
    buffers, reader = Buffers(), Reader()
    buffers.serve(reader)
    held, other = (buffers.take(1000 * KIB) for _ in range(2))
    held[:] = other[:] = b"x" * 1000 * KIB
    place = address(other)
    del other
    before = lazily_freed(place)
    del reader
    assert 900 * KIB < lazily_freed(place) - before <= 1024 * KIB
    assert bytes(held) == b"x" * len(held), "somebody holds it"
    assert address(buffers.take(1000 * KIB)) == place


def test_a_forked_child_takes_memory_of_its_own():
    SHARED.take(300 * KIB)
    child = os.fork()
    if child == 0:
        os._exit(len(SHARED._kept))
    assert os.waitpid(child, 0)[1] == 0
    assert SHARED._kept
