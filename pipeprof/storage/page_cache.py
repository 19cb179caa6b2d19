"""The page cache of local files: how much of them it holds, emptied or filled without privilege.

What cannot be known here (another system, an old kernel, a file system with caches of its own) is
said to be unknown, with the reason; nothing here raises.
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

import numpy as np

_LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "jfs", "vfat", "exfat")
)
"""File systems whose data is in this machine's page cache or on its disks, and nowhere between."""
_IN_MEMORY = frozenset(("tmpfs", "ramfs"))
_NO_FILES = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts",
    "devtmpfs", "efivarfs", "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore",
    "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
))  # fmt: skip
"""What the kernel mounts to show itself."""
_OF_IMAGES = frozenset(("overlay", "squashfs", "erofs", "iso9660"))
"""Of containers and packages; of their reads, too, the kernel counts what disks moved."""
_CACHESTAT = 451
_KNOWS_CACHESTAT = frozenset(("x86_64", "aarch64"))
_CHUNK = 1 << 23


@dataclass(frozen=True)
class Residency:
    """How much of some files lies in memory."""

    share: float | None
    """Of their pages, 0..1; ``None``: unknown."""
    reason: str = ""
    """Why it is unknown, or why it cannot be otherwise."""
    local: bool = True
    """Whether what is not in memory comes from a disk of this machine, with no cache between."""


def residency(paths: Sequence[str], root: str = "/proc") -> Residency:
    """What can be trusted about ``paths``: first by their file systems, then by the kernel."""
    found = by_file_system(paths, root)
    if found is not None:
        return found
    share = resident_share(paths)
    if share is None:
        return Residency(None, "this system does not tell us how much of the files is in memory")
    return Residency(share)


def by_file_system(paths: Sequence[str], root: str = "/proc") -> Residency | None:
    """What is known without looking at a page; ``None``: they are on disks of this machine."""
    mounts = read_mounts(root)
    kinds = {filesystem_of(path, mounts) for path in paths}
    foreign = sorted(str(kind) for kind in kinds - _LOCAL - _IN_MEMORY)
    if None in kinds:
        return Residency(None, "it is not known which file system holds the files", local=False)
    if foreign:
        reason = f"{', '.join(foreign)} may keep caches that cannot be seen"
        return Residency(None, reason, local=False)
    if kinds and kinds <= _IN_MEMORY:
        return Residency(1.0, f"{', '.join(sorted(map(str, kinds)))} holds its files in memory")
    return None


def resident_share(paths: Iterable[str]) -> float | None:
    """The share of the files' pages that is in memory, as the kernel tells it (0..1).

    ``None``: there are no pages, or it does not tell, as to users who may not write the files.
    """
    cached = total = 0
    try:
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                pages = _pages(file.fileno())
                found = _cached_pages(file.fileno()) if pages else 0
            if found is None:
                return None
            cached, total = cached + min(found, pages), total + pages
    except OSError:
        return None
    return cached / total if total else None


def evict(paths: Iterable[str]) -> None:
    """Out of memory with what can go: not pages that a process has mapped."""
    for path in paths:
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            forget(file.fileno())
            if _cached_pages(file.fileno()):
                # dirty pages go only once they are written, which takes long: not for every file
                os.fsync(file.fileno())
                forget(file.fileno())


def warm(paths: Iterable[str]) -> None:
    """Read everything once."""
    for path in paths:
        with suppress(OSError), open(path, "rb", buffering=0) as file:
            while file.read(_CHUNK):
                pass


def uncounted_kinds(root: str = "/proc") -> tuple[str, ...]:
    """The types of file systems mounted here of which the kernel may not count what they fetch, or
    which may have caches of their own: network, FUSE, and whatever is not known here."""
    known = _LOCAL | _IN_MEMORY | _NO_FILES | _OF_IMAGES
    return tuple(sorted(set(read_mounts(root).values()) - known))


def filesystem_of(path: str, mounts: Mapping[str, str]) -> str | None:
    """Its type, e.g. ``ext4``, by the nearest mount point above; ``None``: unknown."""
    place = os.path.realpath(path)
    while place not in mounts and place != os.path.dirname(place):
        place = os.path.dirname(place)
    return mounts.get(place)


def read_mounts(root: str = "/proc") -> dict[str, str]:
    """Mount point → type of file system. Of several at one place the last is seen."""
    found = {}
    with suppress(OSError):
        for line in Path(root, "self/mountinfo").read_text(errors="surrogateescape").splitlines():
            place, _, source = line.partition(" - ")
            if source and len(place.split()) > 4:
                found[_unescaped(place.split()[4])] = source.split()[0]
    return found


def _unescaped(text: str) -> str:
    """The kernel writes a space in a name as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def forget(descriptor: int, offset: int = 0, length: int = 0) -> None:
    """Out of memory with whole pages of an open file; ``length`` 0: to its end."""
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)


def in_memory(descriptor: int, offset: int, length: int) -> bool:
    """Whether all of a stretch of an open file is known to be; takes some microseconds."""
    libc = _libc()
    pages = -(-(offset + length) // mmap.PAGESIZE) - offset // mmap.PAGESIZE
    found = _by_cachestat(libc, descriptor, offset, length) if libc and length else None
    return found is not None and found >= pages


def _pages(descriptor: int) -> int:
    return -(-os.fstat(descriptor).st_size // mmap.PAGESIZE)


def _cached_pages(descriptor: int) -> int | None:
    libc = _libc()
    if libc is None:
        return None
    found = _by_cachestat(libc, descriptor)
    return _by_mincore(libc, descriptor) if found is None else found


@cache
def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def _by_cachestat(
    libc: ctypes.CDLL, descriptor: int, offset: int = 0, length: int = 0
) -> int | None:
    """Linux 6.5 and later, unless a container forbids it. ``length`` 0: to the end."""
    if platform.machine() not in _KNOWS_CACHESTAT:
        return None
    stretch = (ctypes.c_uint64 * 2)(offset, length)
    counts = (ctypes.c_uint64 * 5)()  # the first is of the pages that are in memory
    failed = libc.syscall(
        ctypes.c_long(_CACHESTAT), ctypes.c_uint(descriptor), stretch, counts, ctypes.c_uint(0)
    )
    return None if failed else counts[0]


def _by_mincore(libc: ctypes.CDLL, descriptor: int) -> int | None:
    file = os.fstat(descriptor)
    path = f"/proc/self/fd/{descriptor}"
    if file.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
        return None  # to whom may not write it, the kernel calls every page resident
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
