"""What the training process has, and may have: unknown where nothing tells. What is counted is held
to the truth in `test_gauges`."""

import os
import resource
from pathlib import Path

from pipeprof.measure import host


def test_idle_time_is_that_of_all_cores(tmp_path):
    (tmp_path / "stat").write_text("cpu  700 0 300 5000 250 0 0 0 0 0\ncpu0 1 2 3 4 5\n")
    assert host.idle_s(str(tmp_path)) == 5250 / os.sysconf("SC_CLK_TCK")
    assert host.idle_s() > 0
    assert host.idle_s(str(tmp_path / "none")) is None


def test_limits_are_those_of_the_process():
    assert host.descriptor_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert host.shared_memory_bytes("/") > 0


def test_the_smaller_of_machine_and_cgroup_counts(tmp_path: Path):
    proc, group = tmp_path / "proc", tmp_path / "cgroup"
    proc.mkdir(), group.mkdir()
    (proc / "meminfo").write_text("MemTotal: 100 kB\nMemAvailable:      64 kB\n")
    assert host.available_bytes(str(proc), str(group)) == 65_536
    (group / "memory.max").write_text("max\n")
    assert host.available_bytes(str(proc), str(group)) == 65_536
    (group / "memory.max").write_text("50000\n")
    (group / "memory.current").write_text("20000\n")
    assert host.available_bytes(str(proc), str(group)) == 30_000


def test_what_is_not_told_is_unknown(tmp_path: Path):
    nowhere = str(tmp_path / "nothing")
    assert host.live_threads(nowhere) is None
    assert host.open_descriptors(nowhere) is None
    assert host.shared_memory_bytes(nowhere) is None
    assert host.available_bytes(nowhere, nowhere) is None
