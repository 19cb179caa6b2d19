"""Let what a data set reads through fsspec and through Python's files count as stage `read`.

Nothing is recorded in a thread that is not making a batch. `fsspec_reads` watches fsspec,
and `file_reads` Python's files.
``numpy.fromfile``, by which ``numpy.load`` reads arrays, takes a file's descriptor, and is clocked
as a whole.

Left out, since it cannot be had cheaply and safely: native readers (pyarrow, HDF5, OpenCV,
torchvision's, safetensors), memory maps and ``os.read``; Python's files in the main process, where
``open`` is the training's as well; reads in threads that the data set starts, and in coroutines
that it awaits itself.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import AbstractContextManager
from typing import Any

from pipeprof.log import suppress_and_log
from pipeprof.measure.patches.file_reads import watch_open
from pipeprof.measure.patches.fsspec_reads import timed, unwatch_fsspec, watch_fsspec

_log = logging.getLogger(__name__)

_lock = threading.Lock()
_users = 0


def watch_reads() -> None:
    """In a worker, for the rest of the process: record reads through fsspec and Python's files."""
    global _lock
    _lock = threading.Lock()  # a fork may have copied it locked
    _begin()
    with suppress_and_log(_log, "reads through Python's files are not recorded"):
        watch_open()
    with suppress_and_log(_log, "reads by NumPy are not recorded"):
        _watch_numpy()


class reads_watched(AbstractContextManager[None]):  # noqa: N801  (used as a function)
    """Record reads through fsspec while the body runs, then put back exactly what was there.

    Fit for the main process: what it replaces is fsspec's alone, and other threads pass through
    it and record nothing, unless they make a batch themselves. May be nested, in threads too. It
    is no generator: Python would run the end of one that is still open at interpreter exit.
    """

    def __enter__(self) -> None:
        _begin()

    def __exit__(self, *error: object) -> None:
        _end()


def _begin() -> None:
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            watch_fsspec()


def _end() -> None:
    global _users
    with _lock:
        _users -= 1
        if not _users:
            unwatch_fsspec()


def _watch_numpy() -> None:
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.fromfile = timed(numpy.fromfile, weigh=lambda array, _: int(array.nbytes))
