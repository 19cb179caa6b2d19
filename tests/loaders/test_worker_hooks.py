"""A worker has its hooks on only while main wants records, and reports whether stages are named."""

import multiprocessing
import queue

import pytest

from pipeprof.loaders.instrument import wake_up
from pipeprof.loaders.instrument.worker_sender import WorkerSender
from pipeprof.measure.ring import RECORD_FIELDS, REPORTED_FIELDS, TIMING_FIELDS, Ring


@pytest.mark.parametrize(("named", "says"), [({}, False), ({"turns": 2.0}, True),
                                             ({"requests": 1.0}, True)])  # fmt: skip
def test_a_data_set_that_reports_stages_is_known(named, says):
    ring = Ring(slots=8)
    writer = ring.writer()
    writer.begin_epoch(0)
    record = dict.fromkeys(REPORTED_FIELDS, 0.0) | named
    for task in range(20):
        plain = task != 5
        writer.write(
            task, list(record.values())[: len(TIMING_FIELDS) if plain else len(REPORTED_FIELDS)]
        )
    assert ring.reports_stages() is says


def sender_of(ring, worker, workers):
    """Return a sender, its queue, and a list that receives what its hooks are set to."""
    sender, results, switched = WorkerSender(ring.writer(), workers), Results(), []
    sender.attach(results, results)
    sender.begin_epoch(worker, switched.append)
    return sender, results, switched


class Results(queue.Queue):
    """A worker's queue of results, and the module with its pickler, which pickles nothing."""

    class _ForkingPickler:
        @staticmethod
        def dumps(obj):
            return obj

    def put(self, obj, block=True, timeout=None):
        super().put(self._ForkingPickler.dumps(obj), block, timeout)

    def hooked(self):
        return {"put", "_ForkingPickler"} & vars(self).keys()


def test_a_worker_has_its_hooks_on_where_main_wants_records():
    """It is the second of three workers, and fetches batches 1, 4, 7, and so on."""
    ring = Ring(slots=8)
    ring.set_window(0, 16)
    sender, results, switched = sender_of(ring, 1, 3)
    recorded_tasks = []
    for task in range(1, 100, 3):
        if task == 52:
            ring.set_window(50, 66)
            sender.switch(True)
        if switched[-1]:
            recorded_tasks.append(task)
        assert results.hooked() == ({"put", "_ForkingPickler"} if switched[-1] else set())
        results.put((task, None))
    assert switched == [True, False, True, False]
    assert recorded_tasks == [*range(1, 16, 3), 16, *range(52, 66, 3), 67], "and one more"


def test_a_worker_that_begins_where_nothing_is_wanted_has_no_hooks():
    _, results, switched = sender_of(Ring(slots=8), 0, 1)
    assert (switched, results.hooked()) == ([False], set())


def test_the_last_batch_of_a_window_is_pickled_after_it():
    ring, waiting = Ring(slots=8), []
    ring.set_window(0, 1)
    sender, results, _ = sender_of(ring, 0, 1)
    sender._put = lambda obj, *_: waiting.append(obj)  # until its thread has time
    sender.add_record((1.0, 2.0, 0.5, 8.0))
    results.put((0, None))
    assert results.hooked() == {"_ForkingPickler"}
    results._ForkingPickler.dumps(waiting[0])
    assert results.hooked() == set()
    record = dict(zip(RECORD_FIELDS, ring.read(1, [0])[0], strict=True))
    assert record["sent_s"] > 0


def test_a_task_that_wakes_a_worker_arrives_as_it_is(monkeypatch):
    switched = []
    monkeypatch.setattr(wake_up, "_wake", lambda: switched.append(True))
    tasks = multiprocessing.Queue()
    plain = (3, [1, 2])
    wake_up.wake_by_next_task(tasks)
    wake_up.wake_by_next_task(tasks)
    for message in (None, plain, plain):
        tasks.put(message)
    assert [tasks.get(timeout=10) for _ in range(3)] == [None, plain, plain]
    assert switched == [True], "once, and None is no task"
    assert "put" not in vars(tasks)
