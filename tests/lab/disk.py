"""A disk of known speed: this process and its children read no faster than the limits (root)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.requirements import missing

_V1, _V2 = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")


@contextmanager
def slow_disk(folder: Path, bytes_per_s: int = 0, requests_per_s: int = 0) -> Iterator[None]:
    """While the body runs, reads from the device under ``folder`` are throttled; 0 means no limit.
    Only what is not in the page cache reaches the device."""
    device = _device_of(folder)
    group, root = _make_group(device, bytes_per_s, requests_per_s)
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it may have ended
                (root / "cgroup.procs").write_text(pid)
        group.rmdir()


def evict(path: Path) -> None:
    """Out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def _make_group(device: str, bytes_per_s: int, requests_per_s: int) -> tuple[Path, Path]:
    """The group, and the one above it."""
    v1 = _V1.is_dir()
    if not v1 and "io" not in _controllers():
        missing("this kernel cannot throttle a disk (cgroup v1 blkio, or v2 io)")
    root = _V1 if v1 else _V2
    group = root / f"pipeprof-lab-{os.getpid()}"
    limits = {"bps": bytes_per_s, "iops": requests_per_s}
    try:
        group.mkdir()
        for name, limit in limits.items():
            if limit and v1:
                (group / f"blkio.throttle.read_{name}_device").write_text(f"{device} {limit}")
            elif limit:
                (group / "io.max").write_text(f"{device} r{name}={limit}")
    except OSError as error:
        missing(f"the disk cannot be throttled here: {error}")
    return group, root


def _controllers() -> list[str]:
    with suppress(OSError):
        (_V2 / "cgroup.subtree_control").write_text("+io")
        return (_V2 / "cgroup.controllers").read_text().split()
    return []


def _device_of(folder: Path) -> str:
    """``major:minor`` of the whole disk."""
    number = folder.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    block = Path("/sys/dev/block", name)
    if not block.exists():
        missing(f"{folder} is not on a block device")
    if (block / "partition").exists():
        return (block.resolve().parent / "dev").read_text().strip()
    return name
