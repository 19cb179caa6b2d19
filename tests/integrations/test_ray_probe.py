"""`pipeprof probe --ray` on a Ray cluster of three nodes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.environments import folder_of
from tests.support.env import UNWATCHED

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(300)]

CLUSTER = Path(__file__).with_name("ray_cluster.py")
QUICK = ["--seconds", "6", "--block", "64KiB", "--in-flight", "4", "--feed", "0", "--json"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.bin").write_bytes(os.urandom(4 << 20))
    return folder


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of three nodes, which is there until the pipe to it is closed."""
    command = [folder_of("main") / "python", CLUSTER, "3", "sh", "-c", 'echo "$0"; cat']
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=UNWATCHED
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate(timeout=60)


def probed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder_of("main") / "pipeprof", "probe", *arguments],
        capture_output=True, text=True, env=UNWATCHED, timeout=200,
    )  # fmt: skip


def test_all_nodes_read_at_once(address: str, data: Path) -> None:
    done = probed(str(data), *QUICK, "--write", "1MB", "--ray", address)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["hosts"]
    assert len(found["names"]) == 3
    assert sorted(point["hosts"] for point in found["bandwidth_points"]) == [1, 1, 2, 2, 3, 3]
    assert found["checkpoint"]["hosts"] == 3
    assert os.listdir(data) == ["a.bin"]


def test_a_cluster_with_too_few_nodes_says_how_many_are_wanted(address: str, data: Path) -> None:
    done = probed(str(data), *QUICK, "--hosts", "4", "--ray", address)
    assert done.returncode == 2
    assert "pipeprof: the Ray cluster has 3 nodes with a CPU, and --hosts 4 needs 4" in done.stderr


def test_a_cluster_that_is_not_there(data: Path) -> None:
    done = probed(str(data), "--ray", "127.0.0.1:1")
    assert done.returncode == 1
    assert "pipeprof: The Ray cluster at 127.0.0.1:1 cannot be reached." in done.stderr
