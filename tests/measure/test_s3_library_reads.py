"""Reads through obstore count as stage `read`, and the library is left as it was."""

import pytest

from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.stage_timer import Tally, tallied

obstore = pytest.importorskip("obstore")
DATA = bytes(range(250)) * 40


@pytest.fixture
def store():
    memory = obstore.store.MemoryStore()
    obstore.put(memory, "x", DATA)
    return memory


def test_ranges_are_reads_by_function_and_by_method(store):
    with reads_recorded(), tallied(Tally()) as tally:
        assert bytes(obstore.get_range(store, "x", start=10, end=60)) == DATA[10:60]
        assert bytes(store.get_range("x", start=0, length=7)) == DATA[:7]
        assert [bytes(each) for each in store.get_ranges("x", starts=[0, 5], ends=[3, 9])] == [
            DATA[:3], DATA[5:9],
        ]  # fmt: skip
    assert (tally.bytes, tally.requests) == (50 + 7 + 7, 4)


def test_errors_are_those_of_the_library(store):
    with reads_recorded(), tallied(Tally()) as tally, pytest.raises(FileNotFoundError):
        store.get_range("nowhere", start=0, length=1)
    assert (tally.bytes, tally.requests) == (0, 1)


def test_outside_of_a_batch_nothing_is_recorded(store):
    tally = Tally()
    with reads_recorded():
        store.get_range("x", start=0, length=10)
    assert (tally.bytes, tally.requests) == (0, 0)


def test_everything_is_restored():
    before = obstore.get_range, obstore.get_ranges
    with reads_recorded():
        assert obstore.get_range is not before[0]
    assert (obstore.get_range, obstore.get_ranges) == before
