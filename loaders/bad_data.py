"""Count and report the data that a data set skips because it is damaged.

Errors of storage are never skipped, because data that cannot be reached is not damaged.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, get_args

import torch

from pipeprof.errors import FormatError, UsageError
from pipeprof.model import OnError, Skipped

_MOST_WARNINGS: Final = 10
"""Most warnings of one process; the profile counts the other objects too."""
_WORKERS: Final = 1024
_ROWS, _PARTS, _EMPTY_EPOCH = range(3)
"""Columns of the counts; the last holds the worker's latest epoch without rows, from 1."""


class SkipCounter:
    """Raises errors of damaged data, or with ``on_error="skip"`` counts them over all workers."""

    def __init__(self, on_error: OnError) -> None:
        if on_error not in get_args(OnError):
            raise UsageError(f"on_error is {on_error!r}; it must be one of 'fail', 'skip'")
        self.enabled = on_error == "skip"
        """Whether damaged data is skipped; otherwise it raises."""
        self._objects = 0
        self._reported: set[str] = set()
        self._first_error = ""
        # each worker counts in its own row of shared memory, so no count needs a lock
        counts: Any = torch.zeros(_WORKERS if self.enabled else 0, 3, dtype=torch.int64)
        self._counts: torch.Tensor = counts.share_memory_() if self.enabled else counts

    @property
    def total(self) -> Skipped | None:
        """What was skipped so far; ``None`` where damaged data raises."""
        if not self.enabled:
            return None
        rows, parts, _ = self._counts.sum(0).tolist()
        return Skipped(rows, parts, self._objects)

    def skip_rows(self, url: str, error: FormatError, rows: int | None, worker: int = 0) -> None:
        """Count skipped ``rows`` of an object; ``None`` means a part with an unknown number. Raises
        ``error`` where nothing is skipped."""
        self._report(url, error)
        if rows is None:
            self._counts[worker % _WORKERS, _PARTS] += 1
        else:
            self._counts[worker % _WORKERS, _ROWS] += rows

    def skip_object(self, url: str, error: FormatError) -> None:
        """Count a skipped object. Raises ``error`` where nothing is skipped."""
        self._report(url, error)
        self._objects += 1

    def check_empty_epoch(self, epoch: int, worker: int, workers: int) -> None:
        """Note that this worker's share of an epoch gave no rows. Raises `FormatError` when no
        worker's share gave any and data was skipped, because continuing would never yield a
        batch."""
        if not self.enabled:
            return
        self._counts[worker % _WORKERS, _EMPTY_EPOCH] = epoch + 1
        empty = self._counts[:workers, _EMPTY_EPOCH] == epoch + 1
        if bool(empty.all()) and int(self._counts[:, :_EMPTY_EPOCH].sum()):
            first = f" The first error was: {self._first_error}" if self._first_error else ""
            raise FormatError(f"on_error='skip' left out all rows, so there is no batch.{first}")

    def _report(self, url: str, error: FormatError) -> None:
        """Warn once per object, or raise ``error`` where nothing is skipped."""
        if not self.enabled:
            raise error from None
        self._first_error = self._first_error or str(error)
        if url in self._reported or len(self._reported) == _MOST_WARNINGS:
            return
        self._reported.add(url)
        last = len(self._reported) == _MOST_WARNINGS
        silence = " Further objects are counted without a warning." if last else ""
        warnings.warn(f"left out, as on_error='skip' asks: {error}{silence}", stacklevel=3)
