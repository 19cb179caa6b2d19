"""The ring between processes: what was written is read, what was lost is known to be lost."""

import multiprocessing
import os
import pickle
import struct

import pytest

from pipeprof.measure.ring import (
    ALWAYS,
    FIELDS,
    RECORD_BYTES,
    SAMPLED,
    UNSEEN,
    Ring,
    pack_always,
    pack_sample,
    record_number,
)


def told(value: int) -> bytes:
    always = pack_always(*(value + place / 8 for place in range(len(ALWAYS))))
    return always + pack_sample([value - place / 8 for place in range(len(SAMPLED))])


def test_a_record_is_read_as_it_was_written():
    ring = Ring(workers=2, slots=4)
    number = record_number(1, 3)
    ring.write(1, number, told(7))
    assert ring.read(1, number) == told(7)
    assert len(UNSEEN) == len(told(7)) == RECORD_BYTES - 8 == 8 * len(FIELDS)


def test_when_a_batch_was_sent_is_told_afterwards():
    ring, number = Ring(workers=2, slots=4), record_number(1, 5)
    ring.write(1, number, told(7))
    ring.mark_sent(1, number, 12.5)
    assert ring.read(1, number) == told(7)[:-8] + struct.pack("<d", 12.5)
    assert FIELDS[-1] == "sent_s"


def test_unused_overwritten_and_foreign_slots_are_lost_records():
    ring = Ring(workers=2, slots=4)
    assert ring.read(0, record_number(1, 0)) is None
    ring.write(0, record_number(1, 0), told(1))
    ring.write(0, record_number(1, 4), told(2))
    assert ring.read(0, record_number(1, 0)) is None, "overwritten by the fifth"
    assert ring.read(0, record_number(2, 0)) is None, "of another epoch"
    assert ring.read(1, record_number(1, 4)) is None, "of another worker"
    assert ring.read(0, record_number(1, 4)) == told(2)


def write_from_child(ring: Ring) -> None:
    for count in range(3):
        ring.write(0, record_number(1, count), told(count))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_writes_what_its_parent_reads(method):
    ring = Ring(workers=1, slots=8)
    child = multiprocessing.get_context(method).Process(target=write_from_child, args=(ring,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [ring.read(0, record_number(1, count)) for count in range(3)] == [
        told(count) for count in range(3)
    ]


def test_it_has_no_name_in_any_file_system_and_closes_its_descriptor():
    shared, descriptors = set(os.listdir("/dev/shm")), len(os.listdir("/proc/self/fd"))
    ring = Ring(workers=1, slots=8)
    assert set(os.listdir("/dev/shm")) == shared
    ring.close()
    ring.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_copy_opened_through_proc_shares_the_memory():
    ring = Ring(workers=1, slots=8)
    copy = pickle.loads(pickle.dumps(ring))
    copy.write(0, record_number(1, 0), told(5))
    assert ring.read(0, record_number(1, 0)) == told(5)


def test_where_memfd_is_missing_it_says_so(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(OSError, match="memfd"):
        Ring(workers=1, slots=1)


def test_where_proc_is_closed_the_records_are_lost_and_nothing_else():
    ring = Ring(workers=1, slots=8)
    state = pickle.dumps(ring)
    ring.close()
    copy = pickle.loads(state)
    copy.write(0, record_number(1, 0), told(5))
    assert copy.read(0, record_number(1, 0)) is None
