"""Describe the machine and the software of a run."""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
from pathlib import Path

from pipeprof.measure.job_place import find_job_place
from pipeprof.measure.placement import device_address, find_placement
from pipeprof.model import Environment, JobPlace
from pipeprof.version import __version__

READERS = (
    *("pyarrow", "pandas", "polars", "duckdb", "datasets", "h5py", "zarr", "lance", "torchvision"),
    *("tensorflow", "tfrecord", "webdataset", "streaming", "litdata", "nvidia.dali"),
    *("PIL", "cv2", "turbojpeg", "decord", "torchcodec", "soundfile", "torchaudio"),
)
"""Libraries that decode training data."""


def read_environment(accelerator: str) -> Environment:
    """Describe this machine and process; ``accelerator`` is what consumes the batches."""
    place = find_job_place()
    return Environment(
        pipeprof=__version__,
        python=platform.python_version(),
        torch=_version("torch"),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=usable_cores(),
        cores_visible=os.cpu_count() or 1,
        ram_bytes=_ram_bytes(),
        accelerator=accelerator,
        ranks=sharing_ranks(place),
        rank=place.rank if place else None,
        readers=loaded_readers(),
        host=socket.gethostname(),
        job=place,
        placement=find_placement(device=device_address()),
    )


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the cores that the affinity and a cgroup's CPU quota allow; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cgroup_cores(cgroup)
    return max(1, min(cores, math.ceil(quota))) if quota else cores


def sharing_ranks(place: JobPlace | None) -> int:
    """Return how many processes of the job share this one's cores; 1 where each is bound to its own
    cores, or their number is unknown."""
    if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        return 1
    return max(1, place.local_world_size or 1) if place else 1


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
