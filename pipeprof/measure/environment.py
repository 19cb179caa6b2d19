"""Describe the machine and the software of a run."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from pipeprof.model import Environment
from pipeprof.version import __version__

_LOCAL_RANKS = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
"""Variables in which torchrun, Open MPI and MPICH give the number of ranks on this machine."""
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Variables in which they give the rank of the process."""

READERS = (
    *("pyarrow", "pandas", "polars", "duckdb", "datasets", "h5py", "zarr", "lance", "torchvision"),
    *("tensorflow", "tfrecord", "webdataset", "streaming", "litdata", "nvidia.dali"),
    *("PIL", "cv2", "turbojpeg", "decord", "torchcodec", "soundfile", "torchaudio"),
)
"""Libraries that decode training data."""


def read_environment(accelerator: str) -> Environment:
    """Describe this machine and process; ``accelerator`` is what consumes the batches."""
    return Environment(
        pipeprof=__version__,
        python=platform.python_version(),
        torch=_version("torch"),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=usable_cores(),
        cores_visible=os.cpu_count() or 1,
        ram_bytes=_ram_bytes(),
        accelerator=accelerator,
        ranks=sharing_ranks(),
        rank=own_rank(),
        readers=loaded_readers(),
    )


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the cores that the affinity and a cgroup's CPU quota allow; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cgroup_cores(cgroup)
    return max(1, min(cores, math.ceil(quota))) if quota else cores


def sharing_ranks(environment: Mapping[str, str] = os.environ) -> int:
    """Return how many ranks a launcher has started on this machine; 1 where each is bound to its
    own cores."""
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        return 1
    given = (environment.get(name, "") for name in _LOCAL_RANKS)
    return next((int(ranks) for ranks in given if ranks.isdecimal() and int(ranks) > 0), 1)


def own_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the rank that a launcher has given to this process, if any."""
    given = (environment.get(name, "") for name in _RANK)
    return next((int(rank) for rank in given if re.fullmatch("[0-9]{1,9}", rank)), None)


def _cgroup_cores(cgroup: Path) -> float | None:
    """Return the CPU quota of cgroup version 2, else 1, in cores; ``None`` without a quota."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota == "max" or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _ram_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def loaded_readers() -> dict[str, str]:
    """Return the versions of the `READERS` that are imported, by name, and import none."""
    versions = {name: _version(name) for name in READERS}
    return {name: version for name, version in versions.items() if version is not None}


def _version(module: str) -> str | None:
    """Return ``None`` for a module that is not imported or has no version."""
    version = getattr(sys.modules.get(module), "__version__", None)
    return None if version is None else str(version)
