"""Reads through obstore count as stage `read`, and the library is left as it was."""

import operator

import pytest

from pipeprof.measure.patches import obstore_reads
from pipeprof.measure.patches.all_reads import reads_recorded
from pipeprof.measure.requests import begin_noting, end_noting, pending_notes
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


@pytest.mark.parametrize("body", ["bytes", "buffer"])
def test_a_whole_object_is_one_request_until_its_last_byte(store, body):
    begin_noting()
    try:
        with reads_recorded(), tallied(Tally(note_requests=True)) as tally:
            answers = [store.get("x"), obstore.get(store, "x")]
            assert [bytes(getattr(answer, body)()) for answer in answers] == [DATA, DATA]
            assert answers[0].meta["size"] == len(DATA)
        assert (tally.bytes, tally.requests) == (2 * len(DATA), 2)
        assert tally.seconds["read"] > 0
        notes = list(pending_notes)
    finally:
        end_noting()
    assert [note[3] for note in notes] == [len(DATA)] * 2
    assert all(start <= first <= end for start, first, end, *_ in notes)
    assert notes[1][0] < notes[1][1]  # the last answer's first byte came after it was asked for


@pytest.mark.parametrize("pieces", [iter, lambda answer: answer.stream(min_chunk_size=1000)])
def test_an_object_in_pieces_is_one_request(store, pieces):
    with reads_recorded(), tallied(Tally()) as tally:
        assert b"".join(bytes(each) for each in pieces(store.get("x"))) == DATA
    assert (tally.bytes, tally.requests) == (len(DATA), 1)


def test_an_answer_of_a_batch_can_be_read_after_it(store):
    with reads_recorded():
        with tallied(Tally()) as tally:
            answer = store.get("x")
        assert bytes(answer.bytes()) == DATA
    assert (tally.bytes, tally.requests) == (0, 1)


@pytest.mark.parametrize("read", ["get_range", "get"])
def test_errors_are_those_of_the_library(store, read):
    limits = {"start": 0, "length": 1} if read == "get_range" else {}
    begin_noting()
    try:
        tally = Tally(note_requests=True)
        with reads_recorded(), tallied(tally), pytest.raises(FileNotFoundError):
            getattr(store, read)("nowhere", **limits)
        assert (tally.bytes, tally.requests) == (0, 1)
        assert [note[-1] for note in pending_notes] == [True]
    finally:
        end_noting()


def test_outside_of_a_batch_nothing_is_recorded(store):
    tally = Tally()
    with reads_recorded():
        store.get_range("x", start=0, length=10)
    assert (tally.bytes, tally.requests) == (0, 0)


def test_an_answer_that_cannot_be_patched_is_read_all_the_same(store, monkeypatch):
    def refuse(*_):
        raise TypeError("cannot set attributes of an immutable type")

    with reads_recorded(), tallied(Tally()) as tally:
        monkeypatch.setattr(obstore_reads, "replace", refuse)
        assert bytes(store.get("x").bytes()) == DATA
    assert (tally.bytes, tally.requests) == (0, 1)


def test_everything_is_restored(store):
    def functions():
        answer, pieces = obstore.get(store, "x"), obstore.get(store, "x").stream()
        of_answer = [vars(type(answer))[name] for name in ("bytes", "buffer", "stream", "__iter__")]
        library = obstore.get, obstore.get_range, obstore.get_ranges
        return [*library, *of_answer, vars(type(pieces))["__next__"]]

    before = functions()
    for _ in range(2):
        with reads_recorded(), tallied(Tally()):
            list(store.get("x"))
            assert not any(map(operator.is_, functions(), before))
        assert functions() == before
