"""Requests, told by a store and counted by who makes the batch: every figure to the last digit."""

import multiprocessing
import os
import threading
from functools import partial
from math import nan
from time import perf_counter, thread_time

import pytest

from pipeprof.measure import requests
from pipeprof.measure.patches.file_reads import recording_open
from pipeprof.measure.request_counts import RequestCounts, RequestTable, RequestTotals
from pipeprof.measure.requests import begin_noting, end_noting, note_request, pending_notes, reading
from pipeprof.measure.stage_timer import Tally, tallied
from pipeprof.model import NO_REQUESTS, RequestLog
from tests.support.leaks import descriptors


@pytest.fixture
def noting():
    begin_noting()
    yield
    end_noting()


def log_of(*tables: RequestCounts | RequestTable) -> RequestLog:
    totals = RequestTotals()
    for table in tables:
        totals.add(table)
    return totals.log()


def test_nothing_is_kept_while_nobody_profiles():
    note_request(1.0, nan, 2.0, 100)
    assert not pending_notes
    assert log_of(RequestCounts()) == NO_REQUESTS


def test_each_request_is_in_every_sum(noting):
    note_request(10.0, 10.5, 11.0, 100)
    note_request(10.25, nan, 12.25, 300, retries=2, throttled=1)
    counts = RequestCounts()
    counts.count_pending()
    log = log_of(counts)
    assert (log.count, log.bytes, log.seconds) == (2, 400, 3.0)
    assert (log.first_byte_count, log.first_byte_s) == (1, 0.5)
    assert (log.size_squares, log.seconds_squares, log.size_seconds) == (100_000, 5.0, 700.0)
    assert (log.retries, log.throttled, log.failed, log.lost) == (2, 1, 0, 0)
    assert (log.began_s, log.ended_s) == (10.0, 12.25)
    assert log.busy_s == 2.25, "they overlap"
    assert not pending_notes


def test_time_without_a_request_is_not_busy(noting):
    counts = RequestCounts()
    for start_s, end_s in ((3.0, 4.0), (0.0, 2.0), (1.0, 1.5)):
        note_request(start_s, nan, end_s, 1)
    counts.count_pending()
    note_request(3.5, nan, 4.5, 1)
    counts.count_pending()
    log = log_of(counts)
    assert (log.seconds, log.busy_s) == (4.5, 3.5)


def test_one_that_failed_is_counted_and_told_apart(noting):
    note_request(1.0, nan, 31.0, 0, retries=4, throttled=4, failed=True)
    note_request(40.0, nan, 40.5, 10)
    counts = RequestCounts()
    counts.count_pending()
    log = log_of(counts)
    assert (log.failed, log.retries, log.throttled) == (1, 4, 4)
    assert (log.count, log.seconds, log.began_s) == (1, 0.5, 40.0)
    assert sum(count for _, count in log.latencies) == 1


@pytest.mark.parametrize("seconds", [2e-6, 1e-3, 0.0371, 1.0, 59.0])
@pytest.mark.parametrize("size", [1, 4096, 1_000_003, 8 << 20])
def test_a_bin_lies_within_three_percent_of_its_values(noting, seconds, size):
    note_request(0.0, seconds / 2, seconds, size)
    counts = RequestCounts()
    counts.count_pending()
    log = log_of(counts)
    assert log.latencies == ((pytest.approx(seconds, rel=0.032), 1),)
    assert log.first_bytes == ((pytest.approx(seconds / 2, rel=0.032), 1),)
    assert log.sizes == ((pytest.approx(size, rel=0.032), 1),)


def test_what_no_bin_was_made_for_falls_into_the_last_one_at_that_end(noting):
    note_request(5.0, nan, 5.0, 0)
    note_request(5.0, nan, 4.0, 1 << 60)  # a clock that went back
    note_request(0.0, nan, 1e6, 1)
    counts = RequestCounts()
    counts.count_pending()
    log = log_of(counts)
    assert [count for _, count in log.latencies] == [2, 1]
    assert [count for _, count in log.sizes] == [2, 1]
    assert log.seconds == 1e6


def test_notes_of_any_thread_are_counted_by_who_makes_the_batch(noting):
    def ask() -> None:
        for _ in range(500):
            note_request(0.0, nan, 1.0, 1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    counts = RequestCounts()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        counts.count_pending()
    counts.count_pending()
    assert log_of(counts).count == 2000


def test_too_many_at_once_are_lost_and_the_loss_is_told(noting):
    for _ in range(requests.MOST_PENDING + 5):
        note_request(0.0, nan, 1.0, 1)
    counts = RequestCounts()
    counts.count_pending()
    log = log_of(counts)
    assert (log.count, log.lost) == (requests.MOST_PENDING, 5)


def count_in_child(table: RequestTable, worker: int, requests_made: int) -> None:
    begin_noting()
    for number in range(requests_made):
        note_request(float(number), nan, number + 0.5, 1000)
    RequestCounts(partial(table.cells, worker)).count_pending()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_main_reads_what_each_worker_counted(method):
    table = RequestTable(workers=2)
    context = multiprocessing.get_context(method)
    children = [
        context.Process(target=count_in_child, args=(table, worker, worker + 3))
        for worker in range(2)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0]
    log = log_of(table)
    assert (log.count, log.bytes, log.seconds) == (7, 7000, 3.5)
    assert (log.began_s, log.ended_s) == (0.0, 3.5)


def test_a_forked_child_does_not_keep_what_its_parent_profiles(noting):
    note_request(0.0, nan, 1.0, 1)
    child = os.fork()
    if not child:
        note_request(0.0, nan, 1.0, 1)
        os._exit(len(pending_notes))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(pending_notes) == 1


def test_passes_that_ended_stay_counted_and_their_memory_is_given_back(noting):
    totals, before = RequestTotals(), descriptors()
    for number in range(20):
        table = RequestTable(workers=2)
        note_request(float(number), nan, number + 1.0, 10)
        RequestCounts(partial(table.cells, 1)).count_pending()
        totals.add(table)
        del table
    log = totals.log()
    assert (log.count, log.bytes) == (20, 200)
    assert (log.began_s, log.ended_s) == (0.0, 20.0)
    assert log.latencies == ((pytest.approx(1.0, rel=0.032), 20),)
    assert len(descriptors() - before) <= 4 * 2, "a map keeps one of its own"


def burn(cpu_s: float) -> None:
    until = thread_time() + cpu_s
    while thread_time() < until:
        pass


def test_reading_counts_the_cpu_of_all_threads_and_one_within_another_once():
    tally, start_s = Tally(note_requests=True), perf_counter()
    with tallied(tally), reading():
        assert not tally.note_requests
        with reading():
            thread = threading.Thread(target=burn, args=(0.05,))
            thread.start()
            thread.join()
    assert tally.note_requests
    assert tally.store_cpu_s >= 0.05
    assert tally.store_s <= perf_counter() - start_s


def test_without_a_batch_under_way_reading_does_nothing():
    with reading(), tallied(Tally()) as tally, reading():
        pass
    assert tally.store_s == tally.store_cpu_s == 0


def test_looking_at_the_threads_is_no_read_of_the_batch(monkeypatch):
    monkeypatch.setattr(requests._run_queue_sampling, "next_s", 0.0)
    monkeypatch.setattr("builtins.open", recording_open)
    with tallied(Tally(note_requests=True)) as tally, reading():
        pass
    assert tally.looked_s > 0
    assert (tally.requests, tally.seconds) == (0, {})
