"""`pipeprof run` under torchrun: each rank has profiles of its own."""

import re
import socket
import sys

from tests.cli.running import RUN, call
from tests.cli.test_run_loaders import delivered, profiles
from tests.support.env import UNWATCHED

RANKS = """
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

if __name__ == "__main__":
    dist.init_process_group("gloo")
    data = torch.arange(80.0)
    total = torch.zeros(1)
    for batch in DataLoader(data, 4, sampler=DistributedSampler(data)):
        total += batch.sum()
    dist.all_reduce(total)
    print(f"total {total.item()}")
    dist.destroy_process_group()
"""


HOST = re.sub(r"[^\w.]+", "-", socket.gethostname())


def of_rank(rank, folder):
    """The profile of the only loader of a rank."""
    (profile,) = profiles(folder / "pipeprof-run" / HOST / f"rank{rank}").values()
    return profile


def test_under_torchrun_each_rank_has_its_profiles_and_the_first_reports(tmp_path):
    (tmp_path / "script.py").write_text(RANKS)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = call([*launch, "-m", "pipeprof", "run", "script.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("total 3160.0") == 2
    for rank in (0, 1):
        assert delivered(of_rank(rank, tmp_path)) == 10
    assert done.stderr.count("What each cure would give") == 1
    assert f"pipeprof: rank 1: saved pipeprof-run/{HOST}/rank1/script.py-11.json" in done.stderr


ALONE = """
import torch
from torch.utils.data import DataLoader

for batch in DataLoader(torch.arange(40.0), 4):
    pass
"""


def test_the_nodes_of_a_large_job_are_not_kept_for_its_report(tmp_path):
    (tmp_path / "script.py").write_text(ALONE)
    step = {"SLURM_JOB_ID": "1", "SLURM_STEP_NUM_TASKS": "4096", "SLURM_PROCID": "0"}
    done = call([*RUN, "script.py"], tmp_path, UNWATCHED | step)
    assert "pipeprof: pipeprof gather pipeprof-run joins all ranks." in done.stderr
    assert f"pipeprof: rank 0: saved pipeprof-run/{HOST}/rank0/script.py-5.json" in done.stderr


def test_under_srun_ranks_do_not_write_over_one_another(tmp_path):
    """Two processes as `srun -n 2` starts them: it sets no RANK."""
    (tmp_path / "script.py").write_text(ALONE)
    step = {"SLURM_JOB_ID": "4711", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NODEID": "0",
            "SLURM_STEP_TASKS_PER_NODE": "2"}  # fmt: skip
    done = [
        call([*RUN, "--full", "script.py"], tmp_path, UNWATCHED | step | {"SLURM_PROCID": rank})
        for rank in ("0", "1")
    ]
    assert [each.returncode for each in done] == [0, 0]
    assert "rank 0 of 2 on " in " ".join(done[0].stderr.split())
    assert "Slurm job 4711" in " ".join(done[0].stderr.split())
    assert f"pipeprof: rank 1: saved pipeprof-run/{HOST}/rank1/script.py-5.json" in done[1].stderr
    assert "Confidence" not in done[1].stderr
    places = [of_rank(rank, tmp_path)["environment"]["job"] for rank in (0, 1)]
    assert [place["rank"] for place in places] == [0, 1]
    assert {place["launcher"] for place in places} == {"Slurm"}
