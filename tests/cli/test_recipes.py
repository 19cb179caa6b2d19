"""The scripts of ``examples/cluster`` run as on Slurm, with stand-ins that set what Slurm sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run_followed import RANK_1, RANKS
from tests.support.env import UNWATCHED

SRUN = """#!{python}
# starts the tasks of a step on this machine, as `srun` does on the nodes of a job
import os, subprocess, sys

nodes, tasks = int(os.environ["SLURM_NNODES"]), int(os.environ["SLURM_NTASKS"])
each = tasks // nodes
step = {{"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURM_STEP_TASKS_PER_NODE": f"{{each}}(x{{nodes}})"}}
running = [
    subprocess.Popen(sys.argv[1:], env=os.environ | step | {{
        "SLURM_PROCID": str(task), "SLURM_LOCALID": str(task % each),
        "SLURM_NODEID": str(task // each)}})
    for task in range(tasks)
]
sys.exit(max(task.wait() for task in running))
"""
SCONTROL = (
    "#!/bin/sh\n[ \"$*\" = 'show hostnames nodes[1-2]' ] && printf 'localhost\\nlocalhost\\n'\n"
)


def submitted(script: Path, folder: Path, tasks: int) -> subprocess.CompletedProcess[str]:
    """Run a batch script as in a job of two nodes that was submitted in ``folder``."""
    (folder / "train.py").write_text(RANKS)
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, text in {"srun": SRUN.format(python=sys.executable), "scontrol": SCONTROL}.items():
        (bin_folder / name).write_text(text)
        (bin_folder / name).chmod(0o755)
    path = os.pathsep.join(map(str, [bin_folder, Path(sys.executable).parent, UNWATCHED["PATH"]]))
    job = {
        "PATH": path, "SLURM_JOB_ID": "4711", "SLURM_NNODES": "2", "SLURM_NTASKS": str(tasks),
        "SLURM_JOB_NODELIST": "nodes[1-2]", "SLURM_PROCID": "0", "RANKS_PER_NODE": "1",
    }  # fmt: skip
    return subprocess.run(
        ["bash", script, "train.py"],
        cwd=folder, env=UNWATCHED | job, capture_output=True, text=True, timeout=150,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slurm_torchrun", "slurm_srun"])
def test_a_job_of_two_nodes_has_one_report(name: str, repo: Path, tmp_path: Path) -> None:
    done = submitted(repo / f"examples/cluster/{name}.sbatch", tmp_path, tasks=2)
    assert done.returncode == 0, done.stderr
    report = " ".join((done.stdout + done.stderr).split())
    assert report.count(RANK_1) == 1
    files = tmp_path.glob("pipeprof-run-4711/*/rank*/train*.json")
    assert {path.parent.name for path in files} == {"rank0", "rank1"}
