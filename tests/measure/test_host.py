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


def test_cores_that_the_host_of_a_virtual_machine_gave_to_others(tmp_path):
    def told(line):
        (tmp_path / "stat").write_text(line)
        return host.core_time(str(tmp_path))

    # user nice system idle iowait irq softirq steal, and guests, who are in user already
    before = told("cpu  700 0 300 5000 250 0 50 100 90 9\ncpu0 1 2 3 4 5 6 7 8\n")
    assert before == (100, 6400)
    later = told("cpu  900 0 400 5200 250 0 50 200 90 9\n")
    assert host.stolen_share(before, later) == 100 / 600
    assert host.stolen_share(later, told("cpu  1900 0 400 5200 240 0 50 200 90 9\n")) == 0.0
    for untold in (
        told("cpu  900 0 400 5250 250 0 50 210 90 9\n"),  # after 60 hundredths of a second
        told("cpu  700 0 300 5000 250 0 50\n"),  # as before Linux 2.6.11
        told("intr 1 2 3\n"),
        host.core_time(str(tmp_path / "none")),
    ):
        assert host.stolen_share(later, untold) is None
    assert host.stolen_share(told("cpu 0 0 0 0 0 0 0 0\n"), host.core_time(str(tmp_path))) is None


def test_this_machine_tells_of_its_core_time():
    now = host.core_time()
    assert now is not None
    assert 0 <= now.stolen < now.whole


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
