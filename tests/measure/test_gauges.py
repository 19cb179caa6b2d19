"""How things stand in a process, and how often one may look."""

import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from math import isnan
from pathlib import Path
from subprocess import PIPE

import pytest

from pipeprof.measure.probes import read_gauges
from tests.needs import missing

MB = 1 << 20


@pytest.fixture
def told():
    if not Path("/proc/self/smaps_rollup").exists():
        missing("this system does not tell what a process holds")


def test_descriptors_and_threads_are_counted_exactly(told):
    before = read_gauges()
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    with ExitStack() as files:
        for _ in range(7):
            files.enter_context(open(os.devnull))
        after = read_gauges()
    stop.set()
    for thread in threads:
        thread.join()
    assert after.descriptors == before.descriptors + 7
    assert after.threads == before.threads + 3


def test_memory_that_was_touched_is_private(told):
    before = read_gauges().private_bytes
    touched = b"x" * (64 * MB)
    assert read_gauges().private_bytes - before == pytest.approx(len(touched), rel=0.2)


def test_a_fork_owns_what_it_has_written_to(told, repo):
    script = """if True:
        import os
        from pipeprof.measure.probes import read_gauges

        data = bytearray(b"x" * (64 << 20))
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            first = read_gauges().private_bytes
            data[:16 << 20] = bytes(16 << 20)
            print(first, read_gauges().private_bytes)
    """
    done = subprocess.run([sys.executable, "-c", script], cwd=repo, stdout=PIPE, check=True)
    first, second = map(float, done.stdout.split())
    assert first < 16 * MB
    assert 15 * MB < second - first < 40 * MB  # its source has been freed, or has not


@pytest.mark.parametrize(
    ("there", "known"),
    [
        ("", set()),
        ("fd/0 fd/1 fd/2", {"descriptors"}),
        ("task/10 task/11", {"threads"}),
        ("smaps_rollup", set()),
    ],
)
def test_what_cannot_be_read_is_unknown(tmp_path, there, known):
    for path in there.split():
        (tmp_path / "self" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "self" / path).write_text("no figures\n")
    gauges = read_gauges(str(tmp_path))._asdict()
    assert {name for name, value in gauges.items() if not isnan(value)} == known
