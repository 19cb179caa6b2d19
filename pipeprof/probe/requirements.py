"""Measure how fast a storage saves a checkpoint and reads small files, as imports of code do.

Both write files of their own into a folder that is removed whatever happens.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import UnsupportedOperation
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np

from pipeprof.errors import StorageError
from pipeprof.log import log_caught
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import apply_load
from pipeprof.probe.result import Checkpoint, LoadSpec, SmallReads
from pipeprof.probe.worker_pool import ReaderPool
from pipeprof.storage.errors import classify
from pipeprof.storage.page_cache import evict
from pipeprof.storage.urls import filesystem, is_local, join, local_path

_log = logging.getLogger(__name__)

_PIECE_BYTES = 8 << 20
_CODE_BYTES = 4096


def measure_checkpoint(
    url: str,
    options: dict[str, Any],
    size_bytes: int,
    readers: ReaderPool,
    demand: LoadSpec,
    budget: Budget,
) -> Checkpoint:
    """Write a checkpoint below ``url`` twice: alone, and while ``readers`` read. Raises
    `StorageError`."""
    piece = checkpoint_piece(size_bytes)
    with own_folder(url, options) as folder:
        alone_s = folder.write("alone", piece, size_bytes)
        with ThreadPoolExecutor(1) as pool:
            # the feed lasts about as long as the first checkpoint took
            feed = pool.submit(apply_load, readers, demand, max(1.0, alone_s), budget, 1)
            feeding_s = folder.write("feeding", piece, size_bytes)
        point = feed.result()
    return Checkpoint(size_bytes, size_bytes / alone_s, size_bytes / feeding_s, point)


def measure_small_reads(url: str, options: dict[str, Any], files: int) -> SmallReads:
    """Write ``files`` small files below ``url``, and read them in random order. Raises
    `StorageError`."""
    content, took = os.urandom(_CODE_BYTES), []
    with own_folder(url, options) as folder:
        fs, names = folder.fs, [f"{number}.py" for number in range(files)]
        for name in names:
            folder.write(name, content, len(content))
        paths = [f"{folder.path}/{name}" for name in names]
        if _is_local(fs):
            evict(paths)
        for number in np.random.default_rng(0).permutation(files).tolist():
            start = perf_counter()
            with _explained(paths[number], "read"), fs.open(paths[number], "rb") as file:
                fs.info(paths[number])
                read = file.read()
            took.append(perf_counter() - start)
            if read != content:
                raise StorageError(f"{paths[number]} does not hold what was written to it.")
    p50, p99 = np.quantile(took, [0.5, 0.99]).tolist()
    return SmallReads(files, files / sum(took), p50, p99)


def checkpoint_piece(size_bytes: int) -> bytes:
    """Return the random bytes that a checkpoint of this size repeats."""
    return os.urandom(min(_PIECE_BYTES, size_bytes))


@dataclass(frozen=True)
class OwnFolder:
    """A folder of ours on the probed storage."""

    fs: Any
    """The file system of fsspec."""
    path: str
    """The folder in ``fs``."""
    url: str

    def write(self, name: str, piece: bytes, size_bytes: int) -> float:
        """Write ``piece`` repeatedly, ``size_bytes`` in all, and return the seconds until it is
        stored. A file is stored after fsync, an object when it is closed. Raises `StorageError`."""
        start, path = perf_counter(), f"{self.path}/{name}"
        with _explained(path, "written"), self.fs.open(path, "wb") as file:
            for offset in range(0, size_bytes, len(piece)):
                file.write(piece[: size_bytes - offset])
            with suppress(AttributeError, UnsupportedOperation):
                descriptor = file.fileno()
                file.flush()
                os.fsync(descriptor)
        return perf_counter() - start


@contextmanager
def own_folder(url: str, options: dict[str, Any]) -> Iterator[OwnFolder]:
    """Make a new folder below ``url``, and remove it afterwards. Raises `StorageError`."""
    own = join(url, f".pipeprof-probe-{uuid4().hex[:12]}")
    fs, path = filesystem(f"file://{local_path(own)}" if is_local(own) else own, options)
    if _is_local(fs):  # objects need no folder, and a missing bucket must not be created
        with _explained(path, "created"):
            os.mkdir(path)
    try:
        yield OwnFolder(fs, path, own)
    finally:
        # a store without folders has none where nothing was written
        with _explained(path, "removed; do that by hand"), suppress(FileNotFoundError):
            fs.rm(path, recursive=True)


@contextmanager
def _explained(path: str, action: str) -> Iterator[None]:
    """Turn any error of the body into a `StorageError`: ``path`` cannot be, say, "written"."""
    try:
        yield
    except Exception as error:
        log_caught(_log, error, f"a file of the probe was not {action}")
        raise StorageError(f"{path} cannot be {action}: {classify(error).reason}.") from None


def _is_local(fs: Any) -> bool:
    return "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,))
