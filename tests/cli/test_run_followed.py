"""`pipeprof run` also measures the processes that a script starts, and changes nothing in them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeprof.cli.app import run
from tests.cli.running import RUN, call, call_cold, write
from tests.cli.test_run_loaders import delivered
from tests.support.env import UNWATCHED

PARENT = """
import os, signal, subprocess, sys
import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    list(DataLoader(torch.arange(8.0), 4))
    done = subprocess.run([sys.executable, "child.py", *sys.argv[1:]])
    print("ended", done.returncode)
"""
CHILD = """
import os, signal, sys
import torch
from torch.utils.data import DataLoader

class Data:
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == 39 and sys.argv[1:] == ["raise"]:
            raise ValueError("a broken sample")
        return torch.tensor([index])

if __name__ == "__main__":
    loader = DataLoader(Data(), 4)
    print(sum(map(torch.sum, loader)), loader.num_workers, [p for p in sys.path if "startup" in p])
    if sys.argv[1:] == ["die"]:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(3)
"""


def saved(folder: Path) -> dict[str, dict]:
    """The profiles below ``folder``, by the names of their files."""
    return {path.name: json.loads(path.read_text()) for path in folder.rglob("*-*.json")}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    write(tmp_path, {"parent.py": PARENT, "child.py": CHILD})
    return tmp_path


def test_a_script_within_a_script(scripts: Path) -> None:
    expected = call([sys.executable, "parent.py"], scripts)
    (scripts / "tmp").mkdir()
    done = call([*RUN, "parent.py"], scripts, UNWATCHED | {"TMPDIR": str(scripts / "tmp")})
    assert (done.stdout, done.returncode) == (expected.stdout, 0)
    assert done.stdout == "tensor(780) 0 []\nended 3\n"
    found = saved(scripts / "pipeprof-run")
    assert {name: delivered(each) for name, each in found.items()} == {
        "parent.py-7.json": 2,
        "child.py-15.json": 10,
    }
    heads = [line for line in done.stderr.splitlines() if line.startswith("pipeprof: ")]
    assert heads[:3] == [
        "pipeprof: parent.py:7",
        "pipeprof: child.py:15",
        "pipeprof: saved pipeprof-run/parent.py-7.json",
    ]
    assert heads[3].startswith("pipeprof: process ")
    assert heads[3].endswith("/child.py-15.json")
    assert not list((scripts / "tmp").glob("pipeprof-run-*")), "notes are gone at the end"


@pytest.mark.slow
def test_a_launcher_that_imports_nothing_reports_on_what_it_starts(scripts: Path) -> None:
    """It has neither torch nor a loader, and its folder is new."""
    write(scripts, {"launch.py": "import subprocess, sys\n"
                    "subprocess.run([sys.executable, 'child.py'])\n"})  # fmt: skip
    done = call([*RUN, "--export", "jsonl", "launch.py"], scripts)
    assert done.returncode == 0
    assert "cannot be shown" not in done.stderr
    assert "pipeprof: child.py:15" in done.stderr.splitlines()
    assert [*saved(scripts / "pipeprof-run")] == ["child.py-15.json"]
    assert not [*scripts.glob("*.jsonl*")], "nothing was exported"


@pytest.mark.slow
def test_options_hold_in_it_too(scripts: Path) -> None:
    settings = ["--set", "child.py:num_workers=1", "--json", "--fail-if-starved", "0%"]
    done = call([*RUN, *settings, "parent.py"], scripts)
    output, ended, profiles = done.stdout.split("\n", 2)
    assert (output, ended, done.returncode) == ("tensor(780) 1 []", "ended 3", 3)
    assert [each["name"] for each in json.loads(profiles)] == ["parent.py:7", "child.py:15"]
    assert "was made" not in done.stderr


def test_it_can_be_left_alone(scripts: Path) -> None:
    done = call([*RUN, "--no-follow", "--quiet", "parent.py"], scripts)
    assert (done.stdout, done.stderr) == ("tensor(780) 0 []\nended 3\n", "")
    assert list(saved(scripts / "pipeprof-run")) == ["parent.py-7.json"]


@pytest.mark.slow
def test_its_errors_are_its_own(scripts: Path) -> None:
    expected = call([sys.executable, "parent.py", "raise"], scripts)
    done = call([*RUN, "parent.py", "raise"], scripts)
    assert done.stdout == expected.stdout == "ended 1\n"
    assert "ValueError: a broken sample" in expected.stderr
    assert done.stderr.startswith(expected.stderr)


@pytest.mark.slow
def test_one_that_is_killed_leaves_nothing_and_the_rest_is_reported(scripts: Path) -> None:
    done = call([*RUN, "--quiet", "parent.py", "die"], scripts)
    assert done.stdout.endswith(f"ended -{signal.SIGKILL.value}\n")
    assert list(saved(scripts / "pipeprof-run")) == ["parent.py-7.json"]
    assert "1 process that it started left no profile for this report: it was" in done.stderr
    assert "left no profile" not in call([*RUN, "--quiet", "parent.py"], scripts).stderr


def test_one_without_a_loader_does_not_import_pipeprof(tmp_path: Path) -> None:
    look = "import sys, torch; print('pipeprof' in sys.modules, torch.utils.data.DataLoader)"
    write(tmp_path, {"script.py": (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', {look!r}])\n"
    )})  # fmt: skip
    done = call([*RUN, "script.py"], tmp_path)
    assert done.stdout == "False <class 'torch.utils.data.dataloader.DataLoader'>\n"
    assert "no process that it started did" in done.stderr


def modules(**variables: str) -> set[str]:
    """The modules that a new Python has imported when it begins."""
    command = [sys.executable, "-c", "import sys; print(*sys.modules)"]
    done = subprocess.run(
        command, env=UNWATCHED | variables, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_process_begins_without_further_imports(repo: Path) -> None:
    """So it costs hardly anything."""
    hook = repo / "pipeprof/loaders/autopatch/startup"
    with_hook = modules(PYTHONPATH=str(hook), PIPEPROF_FOLLOW="{}")
    assert with_hook - modules() <= {"__future__", "sitecustomize"}


def test_where_ray_puts_nothing_behind_our_folder_the_present_one_is_not_searched(
    repo: Path, tmp_path: Path
) -> None:
    hook, variables = repo / "pipeprof/loaders/autopatch/startup", dict(UNWATCHED)
    variables.pop("PYTHONPATH", None)
    paths = []
    for more in ({}, {"PYTHONPATH": f"{hook}{os.pathsep}", "PIPEPROF_FOLLOW": "{}"}):
        (tmp_path / "script.py").write_text("import sys; print(sys.path)")
        paths.append(call_cold([sys.executable, "script.py"], tmp_path, variables | more).stdout)
    assert paths[0] == paths[1]


def test_a_sitecustomize_of_the_user_is_imported_after_ours(tmp_path: Path) -> None:
    write(tmp_path, {
        "own/sitecustomize.py": "print(__file__.split('/')[-2])",
        "script.py": "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
    })  # fmt: skip
    paths = os.pathsep.join([str(tmp_path / "own"), *UNWATCHED.get("PYTHONPATH", "").split(":")])
    done = call_cold([*RUN, "script.py"], tmp_path, UNWATCHED | {"PYTHONPATH": paths})
    assert done.stdout == "own\nown\n"  # of `pipeprof run` itself, and of the process


@pytest.mark.slow
def test_a_python_without_pipeprof_says_that_it_is_not_measured(scripts: Path) -> None:
    write(scripts, {"other/pipeprof.py": "raise ImportError('none here')"})
    child = (
        "import subprocess, sys, os\nsubprocess.run([sys.executable, 'child.py'], env=os.environ"
    )
    write(
        scripts, {"script.py": f"{child} | {{'PYTHONPATH': 'other:' + os.environ['PYTHONPATH']}})"}
    )
    done = call([*RUN, "script.py"], scripts)
    assert done.stdout == "tensor(780) 0 []\n"
    assert f"{sys.executable} has no pipeprof, so process " in done.stderr


RANKS = """
import os, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

class Napping(Dataset):
    def __init__(self, rank):
        self.rank = rank
    def __len__(self):
        return 60
    def __getitem__(self, index):
        time.sleep(0.025 if self.rank == 1 else 0.002)
        return torch.tensor([float(index)])

def train(number, **group):
    dist.init_process_group("gloo", **group)
    for batch in DataLoader(Napping(number), num_workers=1, prefetch_factor=1):
        time.sleep(0.010)
        dist.all_reduce(batch)
    dist.destroy_process_group()

def train_at(rank, port):
    train(rank, rank=rank, world_size=2, init_method=f"tcp://127.0.0.1:{port}")

if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        mp.start_processes(train_at, (port,), nprocs=2, start_method=sys.argv[1])
"""
TORCHRUN = ["torch.distributed.run", "--standalone", "--nproc-per-node=2"]
RANK_1 = " Rank 1 is to be cured first: "


def check(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    """The job has one report, from all ranks."""
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stderr.split()).count(RANK_1) == 1
    assert done.stderr.count("STARVED") == 1
    for rank in (0, 1):
        assert f"pipeprof: rank {rank}: saved pipeprof-run/" in done.stderr
    ranks = {each["environment"]["rank"] for each in saved(folder / "pipeprof-run").values()}
    assert ranks <= {0, 1}
    assert run(["gather", str(folder / "pipeprof-run"), "--json"]) == 0


@pytest.mark.parametrize(
    "method",
    ["fork", *(pytest.param(each, marks=pytest.mark.slow) for each in ("spawn", "forkserver"))],
)
def test_ranks_that_the_script_starts_itself(method: str, tmp_path: Path) -> None:
    write(tmp_path, {"train.py": RANKS})
    check(tmp_path, call([*RUN, "train.py", method], tmp_path))


@pytest.mark.slow
def test_a_launcher_within(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": RANKS})
    check(tmp_path, call([*RUN, "-m", *TORCHRUN, "train.py"], tmp_path))


def start_node(node: int, inside: bool, folder: Path, port: int) -> subprocess.Popen[str]:
    """Start the launcher of one of two nodes: with pipeprof inside it, or the reverse."""
    write(folder, {"train.py": RANKS})
    launch = ["-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={node}",
              "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}"]  # fmt: skip
    command = [*launch, *RUN[1:]] if inside else [*RUN[1:], *launch]
    return subprocess.Popen(
        [sys.executable, *command, "train.py"],
        cwd=folder, env=UNWATCHED, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False])
def test_two_nodes_without_a_common_disk(inside: bool, tmp_path: Path) -> None:
    """Two launchers, as on two hosts, each with a folder of its own."""
    nodes = [start_node(node, inside, tmp_path / str(node), 29571 + inside) for node in (0, 1)]
    first, second = (node.communicate(timeout=100)[1] for node in nodes)
    assert RANK_1 in " ".join(first.split()), first
    assert "STARVED" not in second
    assert "pipeprof: rank 1: saved pipeprof-run/" in second
    for node, ranks in ((0, {0, 1}), (1, {1})):
        found = [json.loads(path.read_text()) for path in
                 (tmp_path / str(node) / "pipeprof-run").glob("*/rank*/train*.json")]  # fmt: skip
        assert {each["environment"]["rank"] for each in found} == ranks
