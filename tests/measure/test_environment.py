"""The cores there really are."""

import os
import sys
from types import SimpleNamespace

import pytest

from pipeprof.measure.environment import (
    read_environment,
    sharing_ranks,
    usable_cores,
)
from pipeprof.model import JobPlace


def test_affinity_counts():
    assert usable_cores() <= len(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("text", "cores"), [("50000 100000", 1), ("max 100000", None), ("150000 100000", 2)]
)
def test_a_cgroup_quota_counts(tmp_path, text, cores):
    (tmp_path / "cpu.max").write_text(text + "\n")
    affinity = len(os.sched_getaffinity(0))
    assert usable_cores(tmp_path) == min(affinity, cores or affinity)


def test_the_older_cgroup_counts_too(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == 1
    (tmp_path / "cpu/cpu.cfs_quota_us").write_text("-1\n")
    assert usable_cores(tmp_path) == len(os.sched_getaffinity(0))


def test_it_names_what_eats_the_batches():
    environment = read_environment("emulated: a nap")
    assert environment.accelerator == "emulated: a nap"
    assert environment.ram_bytes > 2**20
    assert 1 <= environment.cores <= environment.cores_visible


def test_it_names_the_libraries_that_decode(monkeypatch):
    import pyarrow as pa

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(__version__="1.2"))
    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace())
    readers = read_environment("").readers
    assert readers["pyarrow"] == pa.__version__
    assert readers["polars"] == "1.2"
    assert not readers.keys() & {"pandas", "h5py"}


def of_node(processes: int | None) -> JobPlace:
    return JobPlace("torchrun", 0, local_world_size=processes)


@pytest.mark.parametrize(
    ("place", "ranks"), [(None, 1), (of_node(8), 8), (of_node(None), 1), (of_node(0), 1)]
)
def test_ranks_share_the_cores(place, ranks):
    assert sharing_ranks(place) == ranks


def test_a_rank_that_is_bound_to_cores_has_them_for_itself():
    before = os.sched_getaffinity(0)
    if len(before) == 1:
        pytest.skip("one core cannot be divided")
    try:
        os.sched_setaffinity(0, {min(before)})
        assert sharing_ranks(of_node(8)) == 1
    finally:
        os.sched_setaffinity(0, before)
