"""Measure, empty and fill the page cache of local files, without privileges.

Nothing here raises. What cannot be known on another system, an old kernel, or a file system with
caches of its own is reported as unknown, with the reason.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

_LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "jfs", "vfat", "exfat")
)
"""File systems whose data is on this machine's disks, with no cache but its page cache."""
_IN_MEMORY = frozenset(("tmpfs", "ramfs"))
_NO_FILES = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts",
    "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore",
    "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
))  # fmt: skip
"""Interfaces of the kernel that are mounted as file systems."""
_OF_IMAGES = frozenset(("overlay", "squashfs", "erofs", "iso9660"))
"""File systems of containers and packages. The kernel counts what disks moved for them too."""
_CACHESTAT_NUMBER = 451
_CACHESTAT_MACHINES = frozenset(("x86_64", "aarch64"))
_CHUNK_BYTES = 1 << 23


@dataclass(frozen=True)
class Residency:
    """How much of some files is in memory."""

    share: float | None
    """The share of their pages that is in memory, 0..1; None where unknown."""
    reason: str = ""
    """Why the share is unknown, or why it is always the same."""
    local: bool = True
    """Whether the other pages come from a disk of this machine, with no cache between."""


def residency(paths: Sequence[str], root: str = "/proc") -> Residency:
    """Return how much of the files is in memory, by their file systems and then by the kernel."""
    known = by_file_system(paths, root)
    if known is not None:
        return known
    share = resident_share(paths)
    if share is None:
        return Residency(None, "this system does not report how much of the files is in memory")
    return Residency(share)


def by_file_system(paths: Sequence[str], root: str = "/proc") -> Residency | None:
    """Return what the file systems alone determine; None for files on this machine's disks."""
    mounts = read_mounts(root)
    kinds = {filesystem_of(path, mounts) for path in paths}
    foreign = sorted(str(kind) for kind in kinds - _LOCAL - _IN_MEMORY)
    if None in kinds:
        return Residency(None, "the file system of the files is unknown", local=False)
    if foreign:
        reason = f"{', '.join(foreign)} may keep caches that cannot be observed"
        return Residency(None, reason, local=False)
    if kinds and kinds <= _IN_MEMORY:
        return Residency(1.0, f"{', '.join(sorted(map(str, kinds)))} holds its files in memory")
    return None


def resident_share(paths: Iterable[str]) -> float | None:
    """Return the share of the files' pages that the kernel reports to be in memory, 0..1.

    None when there are no pages, or when the kernel does not report it, for example to users who
    may not write the files.
    """
    cached = total = 0
    try:
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                pages = _pages(file.fileno())
                resident = _cached_pages(file.fileno()) if pages else 0
            if resident is None:
                return None
            cached, total = cached + min(resident, pages), total + pages
    except OSError:
        return None
    return cached / total if total else None


def evict(paths: Iterable[str]) -> None:
    """Remove the files from memory, except pages that a process has mapped."""
    for path in paths:
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            forget(file.fileno())
            if _cached_pages(file.fileno()):
                # dirty pages must be written first, which is too slow to do for every file
                os.fsync(file.fileno())
                forget(file.fileno())


def warm(paths: Iterable[str]) -> None:
    """Read the files once, so that they are in memory."""
    for path in paths:
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            while file.read(_CHUNK_BYTES):
                pass


def uncounted_kinds(root: str = "/proc") -> tuple[str, ...]:
    """Return the mounted types of file system whose I/O the kernel may not count. These are network
    file systems, FUSE and unknown ones; they may have caches of their own."""
    known = _LOCAL | _IN_MEMORY | _NO_FILES | _OF_IMAGES
    return tuple(sorted({mount.kind for mount in read_mounts(root).values()} - known))


class Mount(NamedTuple):
    """A mounted file system."""

    kind: str
    """Its type, for example ``ext4``."""
    source: str
    """Its device or server."""
    options: tuple[str, ...]
    """Options of this mount and of the file system."""


def filesystem_of(path: str, mounts: Mapping[str, Mount]) -> str | None:
    """Return the type of the file system at ``path``, for example ``ext4``; None if unknown."""
    mount = mount_of(path, mounts)
    return None if mount is None else mount.kind


def mount_of(path: str, mounts: Mapping[str, Mount]) -> Mount | None:
    """Return the file system at ``path``; None if unknown."""
    place = os.path.realpath(path)
    while place not in mounts and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return mounts.get(place)


def read_mounts(root: str = "/proc") -> dict[str, Mount]:
    """Map each mount point to its file system, the last one of several mounts."""
    mounts = {}
    with suppress(OSError):
        for line in Path(root, "self/mountinfo").read_text(errors="surrogateescape").splitlines():
            place, _, source = line.partition(" - ")
            fields, (kind, device, options) = place.split(), (*source.split(), "", "", "")[:3]
            if kind and len(fields) > 5:
                every = (*fields[5].split(","), *options.split(","))
                mounts[_unescaped(fields[4])] = Mount(kind, _unescaped(device), every)
    return mounts


def _unescaped(text: str) -> str:
    """Decode the kernel's octal escapes; it writes a space in a name as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def forget(descriptor: int, offset: int = 0, length: int = 0) -> None:
    """Remove whole pages of an open file from memory; ``length`` 0 means to its end."""
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)


def in_memory(descriptor: int, offset: int, length: int) -> bool:
    """Return whether a range of an open file is known to be in memory; takes some microseconds."""
    libc = _libc()
    pages = -(-(offset + length) // mmap.PAGESIZE) - offset // mmap.PAGESIZE
    cached = _by_cachestat(libc, descriptor, offset, length) if libc and length else None
    return cached is not None and cached >= pages


def _pages(descriptor: int) -> int:
    return -(-os.fstat(descriptor).st_size // mmap.PAGESIZE)


def _cached_pages(descriptor: int) -> int | None:
    libc = _libc()
    if libc is None:
        return None
    cached = _by_cachestat(libc, descriptor)
    return _by_mincore(libc, descriptor) if cached is None else cached


@cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def _by_cachestat(
    libc: ctypes.CDLL, descriptor: int, offset: int = 0, length: int = 0
) -> int | None:
    """Count the pages in memory by cachestat(); ``length`` 0 means to the end of the file. None
    before Linux 6.5, and in containers that forbid the call."""
    if platform.machine() not in _CACHESTAT_MACHINES:
        return None
    byte_range = (ctypes.c_uint64 * 2)(offset, length)
    counts = (ctypes.c_uint64 * 5)()  # the first counts the pages in memory
    failed = libc.syscall(
        ctypes.c_long(_CACHESTAT_NUMBER),
        ctypes.c_uint(descriptor),
        byte_range,
        counts,
        ctypes.c_uint(0),
    )
    return None if failed else counts[0]


def _by_mincore(libc: ctypes.CDLL, descriptor: int) -> int | None:
    """Count the pages in memory by mincore(); None where the kernel would not report them."""
    file = os.fstat(descriptor)
    path = f"/proc/self/fd/{descriptor}"
    if file.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
        return None  # the kernel would report every page as resident
    if not file.st_size:
        return 0
    mapped = np.frombuffer(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ), np.uint8)
    status = np.empty(_pages(descriptor), np.uint8)
    failed = libc.mincore(
        ctypes.c_void_p(mapped.ctypes.data),
        ctypes.c_size_t(mapped.nbytes),
        ctypes.c_void_p(status.ctypes.data),
    )
    return None if failed else int(np.count_nonzero(status & 1))
