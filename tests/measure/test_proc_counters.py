"""What the system counts, against stretches of time of which the truth is known."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from math import isnan
from pathlib import Path

import pytest

from pipeprof.measure.proc_counters import ThreadProbe
from tests.support.requirements import missing

MB = 1 << 20


@pytest.fixture
def probe():
    """Of this thread, where the system counts everything that is tested here."""
    if not Path("/proc/thread-self/schedstat").exists() or not Path("/proc/self/io").exists():
        missing("this system does not count run-queue delay and reads")
    with closing(ThreadProbe()) as opened:
        yield opened


def burn(wall_s):
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < wall_s:
        pass


def evicted(descriptor):
    """Whether the file is now out of the page cache."""
    os.fsync(descriptor)
    for _ in range(20):  # a page that the kernel is busy with stays
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:  # cannot tell
            return False
        time.sleep(0.05)
    return False


def alone(repo, script):
    """What ``script`` prints, in a process of its own, which may fork and pin itself."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=repo,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timed
def test_nothing_done_costs_nothing(probe):
    probe.begin()
    used = probe.end()
    assert (used.logical_bytes, used.physical_bytes, used.syscalls) == (0, 0, 0)
    assert used.process_cpu_s < 0.01


@pytest.mark.timed
def test_a_sleep_needs_no_core(probe):
    probe.begin()
    time.sleep(0.2)
    used = probe.end()
    assert used.process_cpu_s < 0.02
    assert used.runqueue_s < 0.05
    assert used.logical_bytes == used.syscalls == 0


@pytest.mark.timed
def test_a_burn_has_a_core_or_waits_for_one(probe):
    start_s = time.perf_counter()
    probe.begin()
    burn(0.2)
    used = probe.end()
    wall_s = time.perf_counter() - start_s
    assert used.process_cpu_s + used.runqueue_s == pytest.approx(wall_s, rel=0.1)
    assert used.system_s < 0.25 * used.process_cpu_s


@pytest.mark.timed
def test_work_in_the_kernel_is_told_apart(probe):
    """In a new thread: the kernel shares out a thread's time by samples of its whole life."""

    def read_zeros():
        buffers = [bytearray(MB)]
        with open("/dev/zero", "rb", buffering=0) as zeros, closing(ThreadProbe()) as mine:
            mine.begin()
            while time.thread_time() < 0.3:
                os.readv(zeros.fileno(), buffers)
            return mine.end()

    with ThreadPoolExecutor(1) as pool:
        used = pool.submit(read_zeros).result()
    assert used.system_s > 0.5 * used.process_cpu_s


@pytest.mark.timed
def test_native_threads_show_in_the_process_alone(probe):
    data = bytes(32 * MB)
    alone_s = min(hashing_s(data) for _ in range(3))
    threads = [threading.Thread(target=hashlib.sha256, args=(data,)) for _ in range(2)]
    mine_s = time.thread_time()
    probe.begin()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = probe.end()
    mine_s = time.thread_time() - mine_s
    assert used.process_cpu_s > 1.2 * alone_s  # two hashes, however fast the machine is just now
    assert mine_s < 0.2 * used.process_cpu_s


def hashing_s(data):
    start_s = time.process_time()
    hashlib.sha256(data)
    return time.process_time() - start_s


@pytest.mark.timed
def test_three_on_a_core_wait_two_thirds_of_the_time(probe, repo):
    times = alone(
        repo,
        """
        import json, os, signal, time
        from pipeprof.measure.proc_counters import ThreadProbe

        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        parent = os.getpid()
        rivals = []
        for _ in range(2):
            rival = os.fork()
            if not rival:
                while os.getppid() == parent:
                    pass
                os._exit(0)
            rivals.append(rival)
        time.sleep(0.05)
        probe = ThreadProbe()
        start_s, start_cpu_s = time.perf_counter(), time.thread_time()
        probe.begin()
        while time.perf_counter() - start_s < 0.4:
            pass
        used = probe.end()
        wall_s, cpu_s = time.perf_counter() - start_s, time.thread_time() - start_cpu_s
        for rival in rivals:
            os.kill(rival, signal.SIGKILL)
            os.waitpid(rival, 0)
        print(json.dumps({"wall": wall_s, "cpu": cpu_s, "queue": used.runqueue_s}))
        """,
    )
    assert times["queue"] + times["cpu"] == pytest.approx(times["wall"], rel=0.03)
    assert times["queue"] > 0.6 * times["wall"]  # more, if others use that core as well


@pytest.mark.timed
def test_reads_from_memory_are_logical_only(probe, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(8 * MB))
    probe.begin()
    with open(path, "rb", buffering=0) as file:
        for _ in range(8):
            file.read(MB)
    used = probe.end()
    assert used.logical_bytes == 8 * MB
    assert used.syscalls == 8
    assert used.physical_bytes < MB


@pytest.mark.timed
def test_reads_from_a_device_are_physical_too(probe, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(os.urandom(8 * MB))
    with open(path, "rb", buffering=0) as file:
        if not evicted(file.fileno()):
            missing("a filesystem whose cache can be emptied")
        probe.begin()
        assert len(file.read()) == 8 * MB
        used = probe.end()
    assert 8 * MB <= used.logical_bytes < 9 * MB
    assert 7 * MB <= used.physical_bytes < 16 * MB


@pytest.mark.timed
def test_each_end_starts_the_next_stretch(probe, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(1000))
    probe.begin()
    for _ in range(3):
        path.read_bytes()
        assert probe.end().logical_bytes == 1000
    assert probe.end().logical_bytes == 0


def test_a_fork_counts_for_itself(probe, repo):
    seen = alone(
        repo,
        """
        import json, os
        from pipeprof.measure.proc_counters import ThreadProbe

        probe = ThreadProbe()
        probe.begin()
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            before = probe.end()
            probe.begin()
            with open("/dev/zero", "rb", buffering=0) as zeros:
                zeros.read(1 << 20)
            print(json.dumps([str(before.logical_bytes), probe.end().logical_bytes]))
        """,
    )
    assert seen == ["nan", MB]


def test_a_stretch_that_never_began_is_unknown(probe):
    assert all(map(isnan, probe.end()))
