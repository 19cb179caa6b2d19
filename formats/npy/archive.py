"""Open an `.npz`, a zip archive of arrays, of which only parts were fetched."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from pipeprof.errors import CorruptData, FormatError
from pipeprof.formats.base import Answer, Buffer, ByteRange, ReadRequest
from pipeprof.formats.npy.arrays import ArrayHeader, read_header
from pipeprof.formats.sparse_file import OutsideRanges, SparseFile

MAGIC = b"PK\x03\x04"
SUFFIX = ".npy"
_TAIL_BYTES, _LEAST_BYTES = 2**16, 2**13
_MOST_REQUESTS = 10_000
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, KeyError, OSError,
    NotImplementedError, RuntimeError, OverflowError,
)  # fmt: skip
"""What `zipfile` raises for archives that are damaged, encrypted, or of another compression."""

Found = TypeVar("Found")


class _BytesFile(SparseFile):
    """What was fetched, as the bytes that `zipfile` wants."""

    def read(self, length: int = -1) -> Any:
        return bytes(super().read(length))


def read_archive(
    size: int, work: Callable[[zipfile.ZipFile], Found], all_of_it: bool = False
) -> Generator[ReadRequest, Answer, Found]:
    """Return what ``work`` finds in the archive. What it lacks is requested, and then it is called
    again; with ``all_of_it``, everything is requested at once. Raises `CorruptData`."""
    length = size if all_of_it else min(size, _TAIL_BYTES)
    ranges, buffers = list[ByteRange](), list[Buffer]()
    wanted = size - length, length
    for _ in range(_MOST_REQUESTS):
        answer = yield ReadRequest((wanted,))
        assert answer is not None  # a request is always answered
        ranges.append(wanted)
        buffers += answer
        try:
            with zipfile.ZipFile(_BytesFile(size, ranges, buffers)) as archive:
                return work(archive)
        except OutsideRanges as error:
            begin, missing = error.range
            if not 0 <= begin < size or wanted == (begin, missing):
                raise CorruptData("its directory names bytes that are not there.") from None
            wanted = begin, min(max(missing, _LEAST_BYTES), size - begin)
        except FormatError:
            raise
        except _DAMAGED as error:
            raise CorruptData(f"it is no archive of arrays, or damaged ({error}).") from None
    raise CorruptData("its arrays lie in too many places; it is damaged.")


def headers(archive: zipfile.ZipFile) -> dict[str, ArrayHeader]:
    """Return the header of each array, by its name. Raises `CorruptData`, `SchemaMismatch`."""
    found = {}
    for info in archive.infolist():
        if info.filename.endswith(SUFFIX):
            with archive.open(info) as file:
                header = read_header(file)
            if not header.dtype.hasobject and header.begin + header.nbytes != info.file_size:
                raise CorruptData(f"array {info.filename!r} does not fill its file: damaged.")
            found[info.filename[: -len(SUFFIX)]] = header
    return found


def read_array(archive: zipfile.ZipFile, name: str, header: ArrayHeader) -> bytes:
    """Return the bytes of the values of an array. Raises what `zipfile` raises."""
    with archive.open(name + SUFFIX) as file:
        data = file.read(header.begin + header.nbytes + 1)
    return data[header.begin :]
