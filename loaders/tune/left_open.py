"""Notice what a data set leaves open in the training process, which forked workers would share.

A loader without workers fetches in the training process. Workers that are forked later share each
file that the data set keeps open there. It has one position for all: each may read what another one
asked for. Connections and pipes are shared likewise, and threads do not exist in a fork. A loader
that has workers from the start has none of this, as its data set never runs there.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import stat
import threading
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from pipeprof.loaders.dataset.dataset import FileDataset

_OPEN = "/proc/self/fd"
_UNKNOWN = "it is not known what the data set has open"


class LeftOpen:
    """What the data set has left open so far."""

    def __init__(self, forks: bool, library: str | None = None) -> None:
        """``forks``: the workers of the loader are forked; others share nothing. ``library``: one
        that the data set uses, and that hangs in a fork once it has run."""
        self.what = ""
        """In words; empty while there is nothing."""
        self._forks = self._watches = forks
        self._library = library

    @classmethod
    def by(cls, loader: DataLoader[Any]) -> LeftOpen:
        """Return what the data set of ``loader`` has left open, which is nothing yet."""
        context, data = loader.multiprocessing_context or multiprocessing, loader.dataset
        forks = context.get_start_method() == "fork"
        if not isinstance(data, FileDataset):
            return cls(forks)
        # an epoch of `open_dataset` opens what it reads, and closes it at its end
        return cls(False, data.unforkable if forks else None)

    def end_watch(self) -> None:
        """Fetch without watching from now on, which makes a fork unsafe."""
        self._watches = False

    def next(self, batches: Iterator[Any]) -> Any:
        """Return the next of ``batches``, which are fetched in the training process."""
        if not self._watches:
            if self._forks:
                self.what = self.what or _UNKNOWN
            if self._library:
                self.what = f"{self._library} has run in the training process"
            return next(batches)
        before, threads = _descriptors(), threading.active_count()
        try:
            return next(batches)
        finally:
            after = _descriptors()
            if before is None or after is None:
                self.what = self.what or _UNKNOWN
            else:
                if threading.active_count() > threads:
                    self.what = "the data set has started threads"
                for name in map(_shared, map(int, after - before)):
                    self.what = f"the data set keeps {name} open" if name else self.what


def _descriptors() -> set[str] | None:
    """Return the open descriptors, but for those of the listing, whose numbers are free again.
    ``None`` where they cannot be listed, as without `/proc`."""
    try:
        listing = os.open(_OPEN, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        lowest = os.dup(listing)  # `os.listdir` uses a duplicate, which gets the same number
        os.close(lowest)
        return {*os.listdir(listing)} - {str(listing), str(lowest)}
    except OSError:
        return None
    finally:
        os.close(listing)


def _shared(descriptor: int) -> str:
    """Return the name of what two processes with ``descriptor`` would share the state of; empty if
    they share none."""
    try:
        mode = os.fstat(descriptor).st_mode
        access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        path = os.readlink(f"{_OPEN}/{descriptor}")
    except OSError:  # another thread has closed it meanwhile
        return ""
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        return f"a {path.partition(':')[0]}"
    of_kernel = path.startswith(("/proc/", "/sys/"))  # pipeprof's counters are among them
    readable = stat.S_ISREG(mode) and access != os.O_WRONLY
    return os.path.basename(path) if readable and not of_kernel else ""
