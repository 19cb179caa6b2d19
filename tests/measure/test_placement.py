"""Where a process runs: on this machine, and on made-up ones with two NUMA nodes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeprof.measure.placement import find_placement, numbers

DEVICE = "0000:3b:00.0"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two nodes of four cores. The process may use two of node 1; device and a card are on 0."""
    files = {
        "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t4,6-7\nMems_allowed_list:\t0-1\n",
        "proc/self/numa_maps": "00400000 bind:1 file=/usr/bin/python\n00500000 default\n",
        "sys/devices/system/node/node0/cpulist": "0-3\n",
        "sys/devices/system/node/node1/cpulist": "4-7\n",
        f"sys/bus/pci/devices/{DEVICE}/numa_node": "0\n",
        "sys/bus/pci/devices/0000:5e:00.0/numa_node": "-1\n",
        "sys/class/net/eth0/device/numa_node": "0\n",
        "sys/class/net/eth0/operstate": "up\n",
        "sys/class/net/eth1/device/numa_node": "1\n",
        "sys/class/net/eth1/operstate": "down\n",
        "sys/class/net/lo/operstate": "unknown\n",
        "sys/class/infiniband/mlx5_0/device/numa_node": "1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_machine_of_two_nodes(machine: Path) -> None:
    found = find_placement(str(machine), DEVICE)
    assert found is not None
    assert (found.cores, found.core_nodes, found.memory_nodes) == ((4, 6, 7), (1,), (0, 1))
    assert (found.memory_policy, found.device_node) == ("bind:1", 0)
    assert found.nic_nodes == {"eth0": 0, "mlx5_0": 1}


@pytest.mark.parametrize("device", ["0000:5e:00.0", "0000:ff:00.0", None])
def test_a_device_of_which_the_machine_does_not_say_the_node(device, machine: Path) -> None:
    found = find_placement(str(machine), device)
    assert found is not None
    assert found.device_node is None


def test_a_system_without_these_files_has_no_placement(tmp_path: Path) -> None:
    assert find_placement(str(tmp_path)) is None


def test_this_machine() -> None:
    found = find_placement()
    assert found is not None
    assert set(found.cores) == os.sched_getaffinity(0)


def test_lists_of_the_kernel() -> None:
    assert numbers("0-3,8,10-11\n") == [0, 1, 2, 3, 8, 10, 11]
    assert numbers("") == []
