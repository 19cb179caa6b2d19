"""The ring between processes: what was written is read, what was lost is known to be lost."""

import multiprocessing
import os
import pickle

import pytest

from pipeprof.measure.ring import Ring, WorkerRecord, record_number


def record(value: int) -> WorkerRecord:
    return WorkerRecord(*(value + part / 8 for part in range(7)), bytes=value, requests=value + 1)


def test_a_record_is_read_as_it_was_written():
    ring = Ring(workers=2, slots=4)
    ring.write(1, record_number(1, 3), record(7))
    assert ring.read(1, record_number(1, 3)) == record(7)


def test_unused_overwritten_and_foreign_slots_are_lost_records():
    ring = Ring(workers=2, slots=4)
    assert ring.read(0, record_number(1, 0)) is None
    ring.write(0, record_number(1, 0), record(1))
    ring.write(0, record_number(1, 4), record(2))
    assert ring.read(0, record_number(1, 0)) is None, "overwritten by the fifth"
    assert ring.read(0, record_number(2, 0)) is None, "of another epoch"
    assert ring.read(1, record_number(1, 4)) is None, "of another worker"
    assert ring.read(0, record_number(1, 4)) == record(2)


def write_from_child(ring: Ring) -> None:
    for count in range(3):
        ring.write(0, record_number(1, count), record(count))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_writes_what_its_parent_reads(method):
    ring = Ring(workers=1, slots=8)
    child = multiprocessing.get_context(method).Process(target=write_from_child, args=(ring,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [ring.read(0, record_number(1, count)) for count in range(3)] == [
        record(count) for count in range(3)
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
    copy.write(0, record_number(1, 0), record(5))
    assert ring.read(0, record_number(1, 0)) == record(5)


def test_where_memfd_is_missing_it_says_so(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(OSError, match="memfd"):
        Ring(workers=1, slots=1)


def test_where_proc_is_closed_the_records_are_lost_and_nothing_else():
    ring = Ring(workers=1, slots=8)
    state = pickle.dumps(ring)
    ring.close()
    copy = pickle.loads(state)
    copy.write(0, record_number(1, 0), record(5))
    assert copy.read(0, record_number(1, 0)) is None
