"""Find the place of this process in a job of several, by the variables that launchers set.

The variables are documented by torchrun (``torch.distributed.run``), Slurm's ``srun``, Open MPI
("Environment variables set for MPI applications"), MPICH's Hydra and Kubernetes (indexed jobs).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeprof.model import JobPlace

Variables = Mapping[str, str]


@dataclass(frozen=True)
class _Launcher:
    """The variables of one launcher; empty for those that it does not set."""

    name: str
    rank: str
    world_size: str = ""
    local_rank: str = ""
    local_world_size: str = ""
    nodes: tuple[str, ...] = ()
    """Variables with the number of the node; the first that is set counts."""
    started: Callable[[Variables], bool] = lambda variables: True
    """Whether the launcher started this very process, and not a script that contains it."""


def _is_step(variables: Variables) -> bool:
    """Return whether ``srun`` started several processes. A batch script has a SLURM_PROCID, too."""
    return (_number(variables, "SLURM_STEP_NUM_TASKS") or 1) > 1


_TORCH = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", ("GROUP_RANK", "NODE_RANK"))
_LAUNCHERS = (
    _Launcher("torchrun", *_TORCH, started=lambda variables: "TORCHELASTIC_RUN_ID" in variables),
    _Launcher("RANK", *_TORCH),
    _Launcher(
        *("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
        *("SLURM_STEP_TASKS_PER_NODE", ("SLURM_NODEID",), _is_step),
    ),
    _Launcher(
        *("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        *("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ),
    _Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    _Launcher("Kubernetes", "JOB_COMPLETION_INDEX"),
)
"""The launcher nearest to the process comes first: torchrun may run within a Slurm job."""
_group: dict[int, JobPlace] = {}
"""This process → its place in torch's process group. A fork has another one."""
_JOB_IDS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_ATTEMPTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")


def find_job_place(variables: Variables = os.environ) -> JobPlace | None:
    """Return the place of this process in its job; ``None`` where it is alone.

    What `note_process_group` saw counts where a launcher set no variables or other ones.

    Args:
        variables: The environment variables to look at.

    Example:
        >>> find_job_place({"RANK": "3", "WORLD_SIZE": "8"}).rank
        3
    """
    group = _group.get(os.getpid())
    for launcher in _LAUNCHERS:
        rank = _number(variables, launcher.rank)
        if rank is not None and launcher.started(variables):
            place = _place(launcher, rank, variables)
            return place if group is None or group.rank == rank else group
    return group


def note_process_group() -> None:
    """Remember this process's place in torch's process group, if there is one of several ranks.

    A script that starts its ranks itself, as `torch.multiprocessing.spawn` does, may set no
    variables, or the same for all; and the group may be gone when the run has ended.
    """
    dist: Any = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if world_size > 1:
        variables = dict.fromkeys(("rank", "world_size"), "torch.distributed")
        _group[os.getpid()] = JobPlace("torch", rank, variables=variables, world_size=world_size)


def _place(launcher: _Launcher, rank: int, variables: Variables) -> JobPlace:
    names = {
        "world_size": launcher.world_size,
        "local_rank": launcher.local_rank,
        "local_world_size": launcher.local_world_size,
        "node": _first(variables, launcher.nodes),
        "attempt": _first(variables, _ATTEMPTS),
    }
    numbers = {field: _number(variables, name) for field, name in names.items()}
    if launcher.name == "Slurm":  # which gives a list of all nodes
        counts = variables.get(launcher.local_world_size, "")
        numbers["local_world_size"] = tasks_of(counts, numbers["node"])
    used = {field: names[field] for field, number in numbers.items() if number is not None}
    job_id = _job_id(variables)
    if job_id:
        used["job_id"] = job_id
    return JobPlace(
        launcher=launcher.name,
        rank=rank,
        job_id=variables.get(job_id),
        variables={"rank": launcher.rank, **used},
        **numbers,
    )


def tasks_of(counts: str, node: int | None) -> int | None:
    """Return the number of tasks on a node by Slurm's list, such as ``"4(x2),1"``; ``None`` where
    the list is not understood or ends before the node."""
    if node is None:
        return None
    for part in counts.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match is None:
            return None
        node -= int(match[2] or 1)
        if node < 0:
            return int(match[1])
    return None


def _job_id(variables: Variables) -> str:
    """Return the variable with the job's name; torchrun calls a job of one node ``none``."""
    named = (name for name in _JOB_IDS if variables.get(name, "none") not in ("", "none"))
    return next(named, "")


def _first(variables: Variables, names: tuple[str, ...]) -> str:
    """Return the first of the variables that holds a number; empty for none."""
    return next((name for name in names if _number(variables, name) is not None), "")


def _number(variables: Variables, name: str) -> int | None:
    value = variables.get(name, "")
    is_number = value.isascii() and value.isdigit() and len(value) <= 9
    return int(value) if is_number else None
