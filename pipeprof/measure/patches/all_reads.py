"""Record the reads of a data set through libraries, Python's files and NumPy as the stage `read`.

Nothing is recorded in a thread that is not making a batch. `fsspec_reads` patches fsspec,
`obstore_reads` and `s3torchconnector_reads` libraries for S3, and `urllib3_reads` what boto3 and
most clients of HTTP receive through. `gpu_direct_reads` patches libraries that read into a GPU's
memory, and `file_reads` Python's files.
``numpy.fromfile``, by which ``numpy.load`` reads arrays, takes a descriptor, and is recorded as a
whole.

These reads are not recorded, as that would not be cheap or not be safe:

- native readers (pyarrow, HDF5, OpenCV, torchvision, safetensors), memory maps and ``os.read``
- Python's files in the main process, where the training uses ``open`` as well
- reads in threads that the data set starts, and in coroutines that it awaits itself
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pipeprof.log import suppress_and_log
from pipeprof.measure.patches import (
    fsspec_reads,
    gpu_direct_reads,
    obstore_reads,
    s3torchconnector_reads,
    urllib3_reads,
)
from pipeprof.measure.patches.file_reads import holders_of_open, patch_open
from pipeprof.measure.patches.recorded_calls import recorded_read
from pipeprof.measure.patches.replacing import prepare_patches, restore_all

_log = logging.getLogger(__name__)

_PATCHES = {
    **fsspec_reads.PATCHES,
    **gpu_direct_reads.PATCHES,
    **obstore_reads.PATCHES,
    **s3torchconnector_reads.PATCHES,
    **urllib3_reads.PATCHES,
}

_lock = threading.Lock()
_users = 0
_fromfile: Any = np.fromfile
_recorded_fromfile = recorded_read(_fromfile, nbytes=lambda array, _: int(array.nbytes))


def prepare_reads() -> Callable[[], None]:
    """Return a function that records reads through libraries, Python's files and NumPy for the rest
    of a worker's life. To prepare it before the worker is forked saves time, as the child copies
    each page of memory that it writes to."""
    modules, patch_libraries, holders = (
        len(sys.modules),
        prepare_patches(_PATCHES),
        holders_of_open(),
    )

    def patch_reads() -> None:
        global _lock
        if len(sys.modules) != modules:
            return prepare_reads()()
        _lock = threading.Lock()  # a fork may have copied a locked one
        with suppress_and_log(_log, "reads through Python's files or by NumPy are not recorded"):
            _begin(patch_libraries)
            patch_open(holders)
            _patch_numpy()
        return None

    return patch_reads


class reads_recorded(AbstractContextManager[None]):  # noqa: N801  (used as a function)
    """Record reads through libraries while the body runs, then restore exactly what was there.

    It suits the main process, as it replaces functions of the libraries alone. Other threads
    record nothing, unless they make a batch themselves. It may be nested, also in threads. It is no
    generator: at interpreter exit Python would run the end of one that is still open.
    """

    def __enter__(self) -> None:
        _begin(prepare_patches(_PATCHES))

    def __exit__(self, *error: object) -> None:
        _end()


def _begin(patch_libraries: Callable[[], None]) -> None:
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            patch_libraries()


def _end() -> None:
    global _users
    with _lock:
        _users -= 1
        if not _users:
            restore_all()


def _patch_numpy() -> None:
    if np.fromfile is _fromfile:  # another library may have replaced it
        np.fromfile = _recorded_fromfile
