"""What runs the trials of a sweep elsewhere."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeprof import errors
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.cli.app import run
from pipeprof.errors import FormatError, PipeprofError, StorageError, UsageError
from pipeprof.store import SWEEP_FILE
from pipeprof.sweep.engines.engine import HERE, carried_out, other_node, result_of
from pipeprof.sweep.engines.on_slurm import SlurmEngine
from tests.samples import ENVIRONMENT

DEBUG = {"cluster": "debug"}
"""submitit's executor that runs jobs in this process, and leaves their logs open."""
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning",
                                        "ignore::ResourceWarning")  # fmt: skip


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Have the open logs collected here, and not in another test."""
    yield
    gc.collect()


def refuse(text: str) -> None:
    raise FormatError(text)


def fail() -> None:
    raise ZeroDivisionError("a bug")


def test_a_result_and_a_users_mistake_come_back_as_they_are():
    assert result_of(carried_out(divmod, (7, 2))) == (3, 1)
    with pytest.raises(FormatError, match="a column is missing"):
        result_of(carried_out(refuse, ("a column is missing",)))
    assert HERE.call(divmod, 7, 2) == (3, 1)


def test_every_error_of_pipeprof_can_be_sent():
    kinds = [kind for kind in vars(errors).values()
             if isinstance(kind, type) and issubclass(kind, PipeprofError)]  # fmt: skip
    assert len(kinds) > 5
    for kind in kinds:
        again = pickle.loads(pickle.dumps(kind("what was wrong")))
        assert (type(again), str(again)) == (kind, "what was wrong")


def test_a_job_of_slurm(tmp_path: Path):
    engine = SlurmEngine(tmp_path / "sweep" / "jobs", DEBUG)
    assert engine.call(divmod, 7, 2) == (3, 1)
    with pytest.raises(FormatError, match="a column is missing"):
        engine.call(refuse, "a column is missing")


@pytest.mark.parametrize("cluster", ["debug", pytest.param("local", marks=pytest.mark.slow)])
def test_no_key_stays_in_the_files_of_a_job(cluster: str, tmp_path: Path):
    """submitit writes what a job is given, storage options included."""
    folder = tmp_path / "sweep" / "jobs"
    SlurmEngine(folder, {"cluster": cluster}).call(len, {"secret": "secret-of-the-tests"})
    assert folder.stat().st_mode & 0o077 == 0
    assert not [file for file in folder.rglob("*") if b"secret-of" in file.read_bytes()]


@pytest.mark.slow
def test_a_job_that_fails_names_its_log(tmp_path: Path):
    engine = SlurmEngine(tmp_path / "sweep" / "jobs", {"cluster": "local"})
    with pytest.raises(
        StorageError, match=r"The job \d+ of a trial ended without a result; see .*err"
    ):
        engine.call(fail)


def test_logs_stay_only_beside_a_sweep(tmp_path: Path):
    folder = tmp_path / "sweep"
    for saved in (False, True):
        engine = SlurmEngine(folder / "jobs", DEBUG)
        engine.call(divmod, 7, 2)
        (folder / "jobs").mkdir(parents=True, exist_ok=True)
        if saved:
            (folder / SWEEP_FILE).write_text("{}")
        engine.close()
        assert folder.exists() == saved


def test_what_submitit_refuses_is_shown(tmp_path: Path):
    with pytest.raises(UsageError, match=r"submitit refuses .*srun"):
        SlurmEngine(tmp_path / "sweep" / "jobs", {})
    with pytest.raises(UsageError, match=r"submitit refuses .*sluurm"):
        SlurmEngine(tmp_path / "sweep" / "jobs", DEBUG | {"sluurm": 3})
    assert not (tmp_path / "sweep").exists()


def test_a_trial_on_another_host_is_noted_with_what_differs():
    first = replace(ENVIRONMENT, host="node1")
    assert list(other_node(first, first)) == []
    assert list(other_node(first, replace(first, host="node2"))) == [
        "Trials ran on node1 and node2 of the same size."
    ]
    (note,) = other_node(first, replace(first, host="node2", cores=8))
    assert note == "Trials ran on node1 and node2, which differ: cores 2 and 8."


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--on", "k8s"], "--on k8s is unknown; it is ray, ray:ADDRESS or slurm"),
        (["--on-options", "{}"], None),
        (["--on-options", '{"a": 1}'], "--on-options are for --on; give that, too"),
        (["--on", "slurm:host"], "--on slurm:host is unknown"),
    ],
)
def test_an_engine_that_is_none(options, said, tmp_path, capsys):
    code = run(["sweep", str(tmp_path / "none"), "--out", str(tmp_path / "out"), *options])
    message = capsys.readouterr().err
    assert (code, said or "does not exist") == (2 if said else code, said or "does not exist")
    assert (said or "does not exist") in message
    assert not (tmp_path / "out").exists()


def test_a_script_runs_here(capsys):
    assert run(["sweep", "--script", "train.py", "--on", "ray"]) == 2
    assert "--script runs on this machine" in capsys.readouterr().err


@pytest.mark.timed
def test_a_whole_sweep_runs_on_an_engine(tmp_path: Path, capsys):
    """With pairs, on several nodes: ``tests/integrations/test_ray_sweep.py``."""
    generate(GenerateSpec(str(tmp_path / "data"), "tabular", "csv", 2_000_000))
    capsys.readouterr()
    folder = tmp_path / "sweep"
    quick = ["--workers", "0", "--trial-time", "0.2", "--warmup-time", "0.1", "--exhaustive"]
    on = ["--on", "slurm", "--on-options", json.dumps(DEBUG), "--json"]
    assert run(["sweep", str(tmp_path / "data"), "--out", str(folder), *quick, *on]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [trial["config"]["num_workers"] for trial in found["trials"]] == [0]
    assert found["headspace"]
    assert not [note for note in found["notes"] if "Trials ran on" in note]
