"""`pipeprof probe` under a launcher: real processes that meet, as on the nodes of a job."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.env import UNWATCHED

PROBE = [sys.executable, "-m", "pipeprof", "probe"]
QUICK = ["--seconds", "6", "--block", "64KiB", "--in-flight", "4", "--feed", "0.5"]
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.bin").write_bytes(os.urandom(4 << 20))
    return folder


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def on_nodes(*commands: list[str]) -> list[Done]:
    """Run a command on each node of a Slurm step, as `srun` does."""
    step = {
        "SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": str(len(commands)), "SLURM_LOCALID": "0",
        "SLURM_STEP_TASKS_PER_NODE": f"1(x{len(commands)})", "SLURM_STEP_NODELIST": "localhost",
        "MASTER_PORT": free_port(),
    }  # fmt: skip
    running = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=UNWATCHED | step | {"SLURM_PROCID": str(node), "SLURM_NODEID": str(node)},
        )
        for node, command in enumerate(commands)
    ]  # fmt: skip
    said = [process.communicate(timeout=100) for process in running]
    return [Done(process.args, process.returncode, *texts)
            for process, texts in zip(running, said, strict=True)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timed
def test_two_nodes_have_one_report(data: Path, tmp_path: Path) -> None:
    page = tmp_path / "probe.html"
    command = [*PROBE, str(data), *QUICK, "--write", "2MB", "--json", "--html", str(page)]
    first, second = on_nodes(command, command)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert (second.stdout, second.stderr) == ("", "")
    found = json.loads(first.stdout)
    name = socket.gethostname()
    assert found["hosts"]["names"] == [f"{name}#0", f"{name}#1"]
    assert {point["hosts"] for point in found["hosts"]["bandwidth_points"]} == {1, 2}
    assert found["hosts"]["bandwidth"]["per_host"]["value"] > 0
    assert found["hosts"]["checkpoint"]["restore_bytes_per_s"] > 0
    assert found["pipeprof probe"]["objects"] == 1
    assert os.listdir(data) == ["a.bin"]
    assert "Bandwidth over hosts" in page.read_text()


@pytest.mark.slow
def test_a_node_that_does_not_see_the_url_ends_the_probe_on_all(data: Path) -> None:
    """The folder is a local one, which only the first node has."""
    first, second = on_nodes(
        [*PROBE, str(data), *QUICK], [*PROBE, str(data.with_name("none")), *QUICK]
    )
    assert (first.returncode, second.returncode) == (1, 0)
    (line,) = [line for line in first.stderr.splitlines() if line.startswith("pipeprof: ")]
    assert line.startswith(f"pipeprof: 1 of 2 hosts ({socket.gethostname()}#1) failed: ")
    assert first.stdout == second.stdout == second.stderr == ""


@pytest.mark.slow
def test_under_torchrun_one_process_of_a_node_takes_part(data: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m"]
    done = subprocess.run(
        [*launcher, "pipeprof", "probe", str(data), *QUICK],
        env=UNWATCHED, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{data}: a probe from 1 host." in done.stderr
    assert done.stdout.count("Limits of hosts and storage") == 1


def test_hosts_are_for_ray(data: Path) -> None:
    done = subprocess.run([*PROBE, str(data), "--hosts", "2"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--hosts is for --ray" in done.stderr
