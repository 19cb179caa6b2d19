"""The place of a process in its job, by the variables of each launcher."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipeprof.measure import job_place
from pipeprof.measure.job_place import find_job_place, note_process_group, tasks_of

TORCHRUN = {
    "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1",
    "TORCHELASTIC_RUN_ID": "job-7", "TORCHELASTIC_RESTART_COUNT": "2",
}  # fmt: skip
BATCH_SCRIPT = {
    "SLURM_JOB_ID": "200505", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
    "SLURM_NTASKS": "4", "SLURM_TASKS_PER_NODE": "1(x4)",
}  # fmt: skip
"""What a batch script itself has, which is one process whatever number of tasks was asked for."""
SRUN = BATCH_SCRIPT | {
    "SLURM_PROCID": "6", "SLURM_LOCALID": "2", "SLURM_NODEID": "1", "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "7", "SLURM_STEP_TASKS_PER_NODE": "4,3", "SLURM_RESTART_COUNT": "1",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


def place_of(variables: dict[str, str]) -> tuple[object, ...] | None:
    """Return all but the names of the variables."""
    place = find_job_place(variables)
    return None if place is None else tuple(vars(place).values())[:-1]


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        (TORCHRUN, ("torchrun", 5, 8, 1, 4, 1, "job-7", 2)),
        (TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}, ("torchrun", 5, 8, 1, 4, 1, None, 2)),
        ({"RANK": "0", "WORLD_SIZE": "2", "NODE_RANK": "0"},
         ("RANK", 0, 2, None, None, 0, None, None)),
        (SRUN, ("Slurm", 6, 7, 2, 3, 1, "200505", 1)),
        (OPEN_MPI, ("Open MPI", 3, 4, 1, 2, None, None, None)),
        (MPICH, ("MPICH", 1, 2, 1, 2, None, None, None)),
        ({"JOB_COMPLETION_INDEX": "4"}, ("Kubernetes", 4, *[None] * 6)),
    ],
    ids=["torchrun", "torchrun without a name", "RANK alone", "srun", "Open MPI", "MPICH", "pod"],
)  # fmt: skip
def test_each_launcher_says_where_a_process_is(variables, place):
    assert place_of(variables) == place


def test_the_launcher_within_another_counts():
    within = BATCH_SCRIPT | TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"}
    assert place_of(within) == ("torchrun", 5, 8, 1, 4, 1, "200505", 2)


@pytest.mark.parametrize(
    "alone",
    [{}, BATCH_SCRIPT, SRUN | {"SLURM_STEP_NUM_TASKS": "1"}, {"RANK": "first"}, {"RANK": ""},
     {"RANK": "9" * 5000}],
    ids=["no launcher", "batch script", "srun of one", "no number", "empty", "too long"],
)  # fmt: skip
def test_one_process_has_no_place(alone):
    assert find_job_place(alone) is None


def group_of(rank, world_size, monkeypatch):
    """Pretend that torch has a process group, and that a loader is iterated meanwhile."""
    group = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: rank,
        get_world_size=lambda: world_size,
    )  # fmt: skip
    monkeypatch.setattr(job_place, "_group", {})
    with monkeypatch.context() as while_iterated:
        while_iterated.setitem(sys.modules, "torch.distributed", group)
        note_process_group()


def test_the_process_group_counts_where_no_launcher_set_a_variable(monkeypatch):
    group_of(1, 2, monkeypatch)
    assert place_of({}) == ("torch", 1, 2, None, None, None, None, None)


def test_or_where_one_set_the_same_for_all(monkeypatch):
    group_of(1, 2, monkeypatch)
    assert place_of({"RANK": "0", "WORLD_SIZE": "2"})[:2] == ("torch", 1)
    assert place_of(TORCHRUN | {"RANK": "1"})[:2] == ("torchrun", 1), "which knows more"


def test_a_group_of_one_is_no_job(monkeypatch):
    group_of(0, 1, monkeypatch)
    assert find_job_place({}) is None


def test_a_wrong_number_is_unknown():
    place = find_job_place(TORCHRUN | {"WORLD_SIZE": "many", "GROUP_RANK": "-1"})
    assert place is not None
    assert (place.world_size, place.node) == (None, None)
    assert not place.variables.keys() & {"world_size", "node"}


def test_it_says_which_variable_each_figure_is_from():
    assert find_job_place(SRUN).variables == {
        "rank": "SLURM_PROCID", "world_size": "SLURM_STEP_NUM_TASKS", "local_rank": "SLURM_LOCALID",
        "local_world_size": "SLURM_STEP_TASKS_PER_NODE", "node": "SLURM_NODEID",
        "job_id": "SLURM_JOB_ID", "attempt": "SLURM_RESTART_COUNT",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "node", "tasks"),
    [("4", 0, 4), ("4(x2),1", 1, 4), ("4(x2),1", 2, 1), ("4(x2),1", 3, None), ("4(y2)", 0, None),
     ("", 0, None), ("4", None, None)],
)  # fmt: skip
def test_slurm_lists_the_tasks_of_all_nodes(counts, node, tasks):
    assert tasks_of(counts, node) == tasks
