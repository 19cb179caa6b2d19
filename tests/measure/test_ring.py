"""The ring between processes: what was written is read, what was lost is known to be lost."""

import multiprocessing
import os
import pickle

import numpy as np
import pytest

from pipeprof.measure.ring import (
    RECORD_FIELDS,
    SAMPLED_FIELDS,
    STAGE_FIELDS,
    TIMING_FIELDS,
    Ring,
    note_sent,
)
from tests.support.leaks import descriptors

WORKER, SENT, SERIALISED, START = map(
    RECORD_FIELDS.index, ("worker", "sent_s", "serialised_cpu_s", "fetch_start_s")
)


def told(value: int) -> list[float]:
    return [value + place / 8 for place in range(len(TIMING_FIELDS) + len(STAGE_FIELDS))]


def sample(value: int) -> list[float]:
    return [value - place / 8 for place in range(len(SAMPLED_FIELDS))]


def write(ring: Ring, task: int, *batches: list[float], epoch: int = 1, worker: int = 0) -> None:
    """The batches from ``task`` on, by one worker in its nth ``epoch``."""
    writer = ring.writer()
    for _ in range(epoch):
        writer.begin_epoch(worker)
    for place, each in enumerate(batches):
        writer.write(task + place, each)


def read(ring: Ring, task: int, epoch: int = 1) -> list[float] | None:
    """What is known of one record but for who made it; ``None`` when it is lost."""
    [values] = ring.read(epoch, [task]).tolist()
    return None if np.isnan(values).all() else [value for value in values[1:] if value == value]


def test_a_record_is_read_as_it_was_written_and_says_who_wrote_it():
    ring = Ring(slots=4)
    write(ring, 0, told(4), told(5), told(6), [*told(7), *sample(9)], worker=300)
    assert ring.read(1, [3])[0].tolist()[3:] == told(7) + sample(9)
    assert ring.read(1, [0, 3])[:, WORKER].tolist() == [300, 300]


def test_a_batch_that_was_not_sampled_shows_no_older_sample():
    ring = Ring(slots=1)
    write(ring, 0, [*told(1), *sample(9)], told(2))
    assert read(ring, 1) == told(2)


def test_a_batch_without_stages_has_spent_no_time_in_them():
    ring = Ring(slots=1)
    write(ring, 0, [*told(1), *sample(9)], [0.5, 1.5, 0.25, 16])
    table = ring.read(1, [1])[0]
    known = {
        name: table[place]
        for place, name in enumerate(RECORD_FIELDS)
        if table[place] == table[place]
    }
    assert known == {"worker": 0, "fetch_start_s": 0.5, "fetch_end_s": 1.5, "collate_s": 0.25,
                     "samples": 16, **dict.fromkeys(STAGE_FIELDS, 0.0)}  # fmt: skip


def test_when_a_batch_was_sent_and_what_that_took_is_noted_afterwards():
    ring = Ring(slots=4)
    writer = ring.writer()
    writer.begin_epoch(1)
    place = writer.write(5, told(7))
    assert np.isnan(ring.read(1, [5])[0, [SENT, SERIALISED]]).all()
    assert place is not None
    note_sent(writer.memory, place, 12.5, 0.25)
    assert ring.read(1, [5])[0, [SENT, SERIALISED]].tolist() == [12.5, 0.25]


def test_what_serialising_took_is_not_taken_for_that_of_the_batch_before_in_the_slot():
    ring = Ring(slots=4)
    writer = ring.writer()
    writer.begin_epoch(1)
    place = writer.write(1, told(7))
    assert place is not None
    note_sent(writer.memory, place, 12.5, 0.25)
    writer.write(5, told(8))
    assert np.isnan(ring.read(1, [5])[0, [SENT, SERIALISED]]).all()


def test_unused_overwritten_and_foreign_slots_are_lost_records():
    ring = Ring(slots=4)
    assert read(ring, 0) is None
    write(ring, 0, told(1))
    assert read(ring, 0) == told(1)
    write(ring, 0, *map(told, [1, 0, 0, 0, 2]))
    assert read(ring, 0) is None, "overwritten by the fifth"
    assert read(ring, 4) == told(2)
    assert read(ring, 4, epoch=2) is None, "of another epoch"


def test_many_are_read_at_once_and_each_stands_where_it_was_asked_for():
    ring = Ring(slots=16)
    for task in range(15):
        write(ring, task, told(task), worker=task % 3)
    wanted = [7, 0, 14, float("nan"), 3]
    table = ring.read(1, wanted)
    assert table[[0, 1, 2, 4], START].tolist() == [7, 0, 14, 3]
    assert table[[0, 1, 2, 4], WORKER].tolist() == [1, 0, 2, 0]
    assert np.isnan(table[3]).all(), "a batch of which the task is not known"
    assert ring.read(1, []).shape == (0, len(RECORD_FIELDS))


def test_workers_hear_what_main_said_last():
    ring = Ring(slots=4)
    writer = ring.writer()
    assert list(writer.window) == [0, 0]
    ring.set_window(7, 9)
    ring.set_window(3, 1 << 40)
    write(ring, 0, *map(told, range(9)))
    copy = pickle.loads(pickle.dumps(ring))
    assert list(writer.window) == list(copy.writer().window) == [3, 1 << 40]


def write_from_child(ring: Ring) -> None:
    write(ring, 0, *map(told, range(3)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_writes_what_its_parent_reads(method):
    ring = Ring(slots=8)
    child = multiprocessing.get_context(method).Process(target=write_from_child, args=(ring,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert [read(ring, task) for task in range(3)] == [told(task) for task in range(3)]


def test_it_has_no_name_in_any_file_system_and_closes_its_descriptor():
    before = descriptors()
    ring = Ring(slots=8)
    assert {leads_to for _, leads_to, _ in descriptors() - before} == {"/memfd:pipeprof (deleted)"}
    ring.close()
    ring.close()
    assert not descriptors() - before


def test_a_copy_opened_through_proc_shares_the_memory():
    ring = Ring(slots=8)
    copy = pickle.loads(pickle.dumps(ring))
    write(copy, 0, told(5))
    assert read(ring, 0) == told(5)


def test_where_memfd_is_missing_it_says_so(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(OSError, match="memfd"):
        Ring(slots=1)


def test_where_proc_is_closed_the_records_are_lost_and_nothing_else():
    ring = Ring(slots=8)
    state = pickle.dumps(ring)
    ring.close()
    copy = pickle.loads(state)
    write(copy, 0, told(5))
    assert read(copy, 0) is None


def test_memory_that_cannot_be_had_leaves_nothing_open():
    before = descriptors()
    with pytest.raises((OSError, ValueError)):
        Ring(slots=0)
    assert not descriptors() - before


def test_another_file_under_the_same_number_is_left_alone(tmp_path):
    ring = Ring(slots=8)
    state = pickle.dumps(ring)
    number = ring._shared._descriptor
    ring.close()
    (tmp_path / "precious").write_bytes(bytes(8 * 192))
    opened = os.open(tmp_path / "precious", os.O_RDWR)
    os.dup2(opened, number)
    copy = pickle.loads(state)
    write(copy, 0, told(5))
    for descriptor in {opened, number}:
        os.close(descriptor)
    assert (tmp_path / "precious").read_bytes() == bytes(8 * 192)


def test_an_epoch_has_records_of_its_own():
    ring = Ring(slots=4)
    write(ring, 0, told(1), told(2))
    write(ring, 0, told(3), epoch=2)
    assert read(ring, 0, epoch=2) == told(3)
    assert read(ring, 0) is None, "overwritten"
    assert read(ring, 1) == told(2), "not yet"


@pytest.mark.parametrize("odd", [["?", 1.0, 2.0, 3.0], [*told(1)[:-1], None], [1.0], None])
def test_what_cannot_be_told_is_lost_and_the_next_is_not(odd):
    ring = Ring(slots=4)
    writer = ring.writer()
    writer.begin_epoch(0)
    assert writer.write(0, told(1)) is not None
    assert writer.write(1, odd) is None
    assert writer.write(2, told(3)) is not None
    assert [read(ring, task) for task in range(3)] == [told(1), None, told(3)]
