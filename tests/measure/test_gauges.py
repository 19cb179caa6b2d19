"""How things stand in a process: in one of its own, in which nothing else goes on."""

import subprocess
import sys
from math import isnan
from pathlib import Path
from subprocess import PIPE

import pytest

from pipeprof.measure.proc_counters import read_gauges
from tests.support.requirements import missing

MB = 1 << 20


@pytest.fixture
def told():
    if not Path("/proc/self/smaps_rollup").exists():
        missing("this system does not tell what a process holds")


SCRIPT = """if True:
    import os, threading
    from pipeprof.measure.host import live_threads, open_descriptors
    from pipeprof.measure.proc_counters import read_gauges

    before, counted = read_gauges(), (live_threads(), open_descriptors())
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    files = [open(os.devnull) for _ in range(7)]
    after = read_gauges()
    print(after.threads - before.threads, after.descriptors - before.descriptors)
    print(live_threads() - counted[0], open_descriptors() - counted[1])
    stop.set()
    for thread in threads:
        thread.join()

    data = bytearray(b"x" * (64 << 20))
    print(read_gauges().private_bytes - after.private_bytes, 0, flush=True)
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    else:
        first = read_gauges().private_bytes
        data[:16 << 20] = bytes(16 << 20)
        print(first, read_gauges().private_bytes)
"""


def test_what_a_process_has_is_counted(told, repo):
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=repo, stdout=PIPE, check=True)
    gauges, host, (touched, _), (first, second) = [
        tuple(map(float, line.split())) for line in done.stdout.splitlines()
    ]
    assert gauges == host == (3, 7), "threads, and descriptors"
    assert 60 * MB < touched < 160 * MB  # its source has been freed, or has not
    assert first < 16 * MB, "a fork shares what it has not written to"
    assert 15 * MB < second - first < 40 * MB


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
