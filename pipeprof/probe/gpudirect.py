"""Say what a machine lacks to read files straight into a GPU's memory, by GPUDirect Storage.

Everything is read from the kernel's own files, and nothing is loaded or changed. What a driver
would still refuse, NVIDIA's own ``gdscheck`` shows. The conditions are those of its documentation:
https://docs.nvidia.com/gpudirect-storage/
"""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pipeprof.probe.result import GpuDirect
from pipeprof.storage.page_cache import Mount, mount_of, read_mounts

_OF_DISKS = {"ext4", "xfs"}
_OF_NETWORKS = {"lustre", "wekafs", "beegfs", "gpfs", "nfs", "nfs4"}
"""File systems that can send data past the host's memory. NFS can by RDMA."""
_FAST_DISKS = ("/dev/nvme", "/dev/md", "/dev/mapper/")
"""Devices that are NVMe, or may be made of NVMe devices."""


def gpudirect(path: str, direct: bool, root: str = "/") -> GpuDirect:
    """Look what is lacking for files at ``path``.

    Args:
        path: A local file or folder.
        direct: Whether the file system allows direct reads.
        root: Where ``proc`` lies; tests have one of their own.

    Returns:
        What is lacking, in words; nothing where reads may bypass the host's memory.
    """
    mount = mount_of(path, read_mounts(os.path.join(root, "proc")))
    return GpuDirect((*_lacking_software(root), *_lacking_storage(mount, direct)))


def _lacking_software(root: str) -> Iterator[str]:
    drivers = Path(root, "proc/driver")
    if not _has_entries(drivers / "nvidia/gpus"):
        yield "an NVIDIA GPU with its driver loaded"
    if not (drivers / "nvidia-fs").is_dir():
        yield "the kernel module nvidia_fs"
    if not _has_library():
        yield "the library libcufile, of the CUDA toolkit or of the package nvidia-cufile"


def _lacking_storage(mount: Mount | None, direct: bool) -> Iterator[str]:
    if mount is None:
        yield "a file system that is known"
    elif mount.kind in _OF_DISKS:
        if "data=journal" in mount.options:
            yield "ext4 with data=ordered instead of data=journal"
        if not mount.source.startswith(_FAST_DISKS):
            yield f"an NVMe device below {mount.kind} instead of {mount.source}"
    elif mount.kind not in _OF_NETWORKS:
        known = ", ".join(sorted((_OF_DISKS | _OF_NETWORKS) - {"nfs4"}))
        yield f"a file system that supports it ({known}) instead of {mount.kind}"
    elif mount.kind.startswith("nfs") and "proto=rdma" not in mount.options:
        yield "NFS mounted with proto=rdma"
    if not direct:
        yield "direct reads, which this file system refuses"


def _has_entries(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _has_library() -> bool:
    """Return whether the linker, or Python's packages of CUDA, have libcufile."""
    if ctypes.util.find_library("cufile"):
        return True
    try:
        return find_spec("nvidia.cufile") is not None
    except ModuleNotFoundError:  # no package of NVIDIA's
        return False
