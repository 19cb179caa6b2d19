"""The three needs of training: to be fed for long, to save a checkpoint, to load its own code.

The last two write files of their own, only when that is asked for, into a folder that is removed
whatever happens.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np

from pipeprof.errors import StorageError
from pipeprof.log import log_caught
from pipeprof.probe.budget import Budget
from pipeprof.probe.load import load
from pipeprof.probe.result import Checkpoint, LoadSpec, SmallReads
from pipeprof.probe.worker_pool import Crew
from pipeprof.storage.errors import reason
from pipeprof.storage.page_cache import evict
from pipeprof.storage.urls import filesystem, is_local, join, local_path

_log = logging.getLogger(__name__)

_PIECE = 8 << 20
_CODE_BYTES = 4096


def checkpoint(
    url: str, options: dict[str, Any], size_bytes: int, crew: Crew, demand: LoadSpec,
    budget: Budget,
) -> Checkpoint:  # fmt: skip
    """Written below the folder ``url``, twice: alone, and while ``crew`` reads. Raises
    `StorageError`."""
    with _own_folder(url, options) as (fs, folder):
        alone_s = _write(fs, f"{folder}/alone", size_bytes)
        with ThreadPoolExecutor(1) as pool:
            # it is fed for about as long as the first checkpoint took
            feeding = pool.submit(load, crew, demand, max(1.0, alone_s), budget, 1)
            beside_s = _write(fs, f"{folder}/beside", size_bytes)
        fed = feeding.result()
    return Checkpoint(size_bytes, size_bytes / alone_s, size_bytes / beside_s, fed)


def code(url: str, options: dict[str, Any], files: int) -> SmallReads:
    """Of ``files`` small files written below the folder ``url``. Raises `StorageError`."""
    content, took = os.urandom(_CODE_BYTES), []
    with _own_folder(url, options) as (fs, folder):
        paths = [f"{folder}/{number}.py" for number in range(files)]
        for path in paths:
            _write_whole(fs, path, content)
        order = np.random.default_rng(0).permutation(files).tolist()
        for number in order:
            start = perf_counter()
            try:
                with fs.open(paths[number], "rb") as file:
                    fs.info(paths[number])
                    got = file.read()
            except Exception as error:
                log_caught(_log, error, "a small file was not read")
                raise _failed(paths[number], "read", error) from None
            took.append(perf_counter() - start)
            if got != content:
                raise StorageError(f"{paths[number]} is not what was written into it.")
    p50, p99 = np.quantile(took, [0.5, 0.99]).tolist()
    return SmallReads(files, files / sum(took), p50, p99)


@contextmanager
def _own_folder(url: str, options: dict[str, Any]) -> Iterator[tuple[Any, str]]:
    """A file system, and a new folder in it below ``url``; gone afterwards."""
    own = join(url, f".pipeprof-probe-{uuid4().hex[:12]}")
    fs, path = filesystem(f"file://{local_path(own)}" if is_local(own) else own, options)
    try:
        if _is_local(fs):  # objects need no folder, and a missing bucket must not be made
            os.mkdir(path)
    except OSError as error:
        raise _failed(path, "made", error) from None
    try:
        yield fs, path
    finally:
        try:
            fs.rm(path, recursive=True)
        except FileNotFoundError:
            pass  # nothing was written
        except Exception as error:
            log_caught(_log, error, "the probe's own folder was not removed")
            raise _failed(path, "removed; do that by hand", error) from None


def _write(fs: Any, path: str, size_bytes: int) -> float:
    """Seconds until ``size_bytes`` are kept."""
    piece = os.urandom(min(_PIECE, size_bytes))
    start = perf_counter()
    try:
        with fs.open(path, "wb") as file:
            left = size_bytes
            while left > 0:
                file.write(piece[:left])
                left -= len(piece)
            _keep(file)
    except Exception as error:
        log_caught(_log, error, "a file of the probe was not written")
        raise _failed(path, "written", error) from None
    return perf_counter() - start


def _write_whole(fs: Any, path: str, content: bytes) -> None:
    try:
        with fs.open(path, "wb") as file:
            file.write(content)
            _keep(file)
        if _is_local(fs):
            evict([path])
    except Exception as error:
        log_caught(_log, error, "a file of the probe was not written")
        raise _failed(path, "written", error) from None


def _keep(file: Any) -> None:
    """On the disk; an object is kept when it is closed."""
    try:
        descriptor = file.fileno()
    except (AttributeError, OSError):
        return
    file.flush()
    os.fsync(descriptor)


def _is_local(fs: Any) -> bool:
    return "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,))


def _failed(path: str, what: str, error: Exception) -> StorageError:
    return StorageError(f"{path} cannot be {what}: {reason(error)}.")
