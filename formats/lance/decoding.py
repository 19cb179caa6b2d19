"""Give pylance the bytes that were fetched of a file, and have it decode rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError, UsageError
from pipeprof.formats.base import Buffer, ByteRange
from pipeprof.formats.types import first_line

_used_in: int | None = None
"""The process in which the library has its threads."""


def library() -> Any:
    """Return the module ``lance.file``. Raises `UsageError` where it is not installed, or cannot
    work in this process."""
    global _used_in
    try:
        import lance.file
    except ImportError:
        raise UsageError(
            "Lance files are decoded by pylance, which is not installed; pip install pylance, or "
            "pipeprof[lance]."
        ) from None
    if _used_in not in (None, os.getpid()):
        raise UsageError(
            "Lance was used before this process was forked, and its threads are not in it; start "
            "workers by multiprocessing_context='spawn'."
        )
    _used_in = os.getpid()
    return lance.file


def memory_folder() -> str | None:
    """Return a folder whose files lie in memory; ``None`` where there is none."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


@contextmanager
def sparse_copy(size: int, ranges: Sequence[ByteRange], buffers: Sequence[Buffer]) -> Iterator[str]:
    """Yield the path of a file in memory that has the fetched bytes where the object has them, and
    holes elsewhere."""
    with tempfile.NamedTemporaryFile(suffix=".lance", dir=memory_folder(), delete=False) as file:
        try:
            file.truncate(size)
            for (offset, _), buffer in zip(ranges, buffers, strict=True):
                os.pwrite(file.fileno(), buffer, offset)
            yield file.name
        finally:
            with suppress(FileNotFoundError):
                os.unlink(file.name)


def read_rows(
    path: str, names: Sequence[str], first: int, count: int, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield ``count`` rows from row ``first`` on. The file's name is removed as soon as it is open,
    so that a process which is killed leaves nothing. Raises `CorruptData`."""
    with errors_as(CorruptData, "read"):
        reader = library().LanceFileReader(path, columns=list(names))
        os.unlink(path)
        batches = reader.read_range(first, count, batch_size=batch_rows).to_batches()
    while True:
        with errors_as(CorruptData, "read"):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def errors_as(kind: type[FormatError], doing: str) -> Iterator[None]:
    """Turn what the library says of damaged bytes, or of rows that it cannot hold, into an error of
    this ``kind``."""
    try:
        yield
    except (UsageError, GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise kind(
            f"pylance cannot {doing} it ({type(error).__name__}: {first_line(error)})."
        ) from error
