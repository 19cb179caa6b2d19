"""Counters are read from what the kernel shows, and are unknown where it shows nothing."""

import os
from contextlib import closing
from math import isnan

import pytest

from pipeprof.measure import proc_counters
from pipeprof.measure.proc_counters import ThreadProbe, thread_waited_s, threads_waited_s
from tests.support.leaks import descriptors


def unknown(numbers):
    """Names of what is not known."""
    return {name for name, value in numbers._asdict().items() if isnan(value)}


def test_without_proc_only_the_clocks_are_known(tmp_path):
    with closing(ThreadProbe(str(tmp_path))) as probe:
        probe.begin()
        sum(range(1_000_000))
        used = probe.end()
    assert unknown(used) == {"runqueue_s", "logical_bytes", "physical_bytes", "syscalls"}
    assert used.process_cpu_s > 0


def test_a_system_that_keeps_no_times_of_a_thread(monkeypatch):
    monkeypatch.setattr(proc_counters, "_THIS_THREAD", None)
    with closing(ThreadProbe()) as probe:
        probe.begin()
        assert isnan(probe.end().system_s)


IO = "rchar: {}\nwchar: 7\nsyscr: {}\nsyscw: 7\nread_bytes: {}\nwrite_bytes: 7\ncancelled_...: 0\n"


def counters(root, schedstat, io):
    """Write them, each where it is not ``None``."""
    for path, text in (("thread-self/schedstat", schedstat), ("self/io", io)):
        if text is not None:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(text)


def between(root, first, second):
    counters(root, *first)
    with closing(ThreadProbe(str(root))) as probe:
        probe.begin()
        counters(root, *second)
        return probe.end()


def test_counters_are_subtracted_less_the_probes_own(tmp_path):
    schedstat, io = "9 3500000000 2\n", IO.format(1000, 10, 4096)
    used = between(tmp_path, ("5 1000000000 1\n", io), (schedstat, IO.format(5000, 15, 8192)))
    assert used.runqueue_s == pytest.approx(2.5)
    assert used.logical_bytes == 4000 - len(io) - len(schedstat)
    assert used.physical_bytes == 4096
    assert used.syscalls == 5 - 2


@pytest.mark.parametrize("schedstat", [None, "", "0 0 0\n", "1 x 3\n", "17\n"])
def test_without_scheduling_statistics_reads_are_counted_all_the_same(tmp_path, schedstat):
    first, second = IO.format(1000, 10, 0), IO.format(9000, 20, 0)
    used = between(tmp_path, (schedstat, first), (schedstat, second))
    assert unknown(used) == {"runqueue_s"}
    assert used.logical_bytes == 8000 - len(first) - len(schedstat or "")
    assert used.syscalls == (8 if schedstat else 9)


@pytest.mark.parametrize("io", [None, "", "rchar: 5\n", IO.format("x", 1, 1), "no\n" * 11])
def test_without_counted_reads_the_run_queue_is_known_all_the_same(tmp_path, io):
    used = between(tmp_path, ("1 0 1\n", io), ("1 2000000000 2\n", io))
    assert unknown(used) == {"logical_bytes", "physical_bytes", "syscalls"}
    assert used.runqueue_s == pytest.approx(2.0)


def test_a_closed_probe_holds_nothing_and_raises_nothing():
    before = descriptors()
    probe = ThreadProbe()
    held = descriptors() - before
    assert {os.path.basename(leads_to) for _, leads_to, _ in held} == {"schedstat", "io"}
    probe.close()
    probe.close()
    assert not held & descriptors()
    probe.begin()
    assert "logical_bytes" in unknown(probe.end())


def test_what_the_threads_of_a_process_waited_for_a_core_adds_up(tmp_path):
    for thread, waited_ns in (("1", 1_500_000_000), ("2", 250_000_000)):
        folder = tmp_path / "self" / "task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"99 {waited_ns} 7\n")
    (tmp_path / "self" / "task" / "4").mkdir()  # it has just ended
    assert threads_waited_s(str(tmp_path)) == 1.75
    assert thread_waited_s(1, str(tmp_path)) == 1.5
    assert isnan(thread_waited_s(3, str(tmp_path)))
    assert isnan(threads_waited_s(str(tmp_path / "nothing")))
    for thread in "12":
        (tmp_path / "self" / "task" / thread / "schedstat").write_text("99 0 0\n")
    assert isnan(threads_waited_s(str(tmp_path))), "a kernel that does not count"
