"""What a data set leaves out because it cannot be read, when told to: counted, and warned of.

Errors of storage are never left out: data that may be there is not damaged.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, get_args

import torch

from pipeprof.errors import FormatError, UsageError
from pipeprof.model import OnError, Skipped

_MOST_WARNINGS: Final = 10
"""Of one process: the profile counts what is not told."""
_WORKERS: Final = 1024
_ROWS, _PARTS, _BARREN = range(3)


class Skips:
    """Raises what is wrong with the data, or counts it: by all workers, in shared memory."""

    def __init__(self, on_error: OnError) -> None:
        if on_error not in get_args(OnError):
            raise UsageError(f"on_error is {on_error!r}; it must be one of 'fail', 'skip'")
        self.wanted = on_error == "skip"
        """Whether anything is left out, or raised."""
        self._objects = 0
        self._told: set[str] = set()
        self._first = ""
        # each worker counts in a row of its own: none waits for another, and none is lost
        counts: Any = torch.zeros(_WORKERS if self.wanted else 0, 3, dtype=torch.int64)
        self._counts: torch.Tensor = counts.share_memory_() if self.wanted else counts

    @property
    def total(self) -> Skipped | None:
        """So far; ``None`` when everything that cannot be read is an error."""
        if not self.wanted:
            return None
        rows, parts, _ = self._counts.sum(0).tolist()
        return Skipped(rows, parts, self._objects)

    def note(self, url: str, error: FormatError, rows: int | None, worker: int = 0) -> None:
        """``rows`` of an object are left out; ``None``: a part with rows of unknown number.

        Raises ``error`` when nothing is to be left out.
        """
        self._tell(url, error)
        if rows is None:
            self._counts[worker % _WORKERS, _PARTS] += 1
        else:
            self._counts[worker % _WORKERS, _ROWS] += rows

    def note_object(self, url: str, error: FormatError) -> None:
        """A whole object is left out. Raises ``error`` when nothing is to be."""
        self._tell(url, error)
        self._objects += 1

    def check_barren(self, epoch: int, worker: int, workers: int) -> None:
        """This worker's share of an epoch gave no rows. Raises `FormatError` when nobody's did,
        since all there was is left out: nothing would ever come."""
        if not self.wanted:
            return
        self._counts[worker % _WORKERS, _BARREN] = epoch + 1
        barren = self._counts[:workers, _BARREN] == epoch + 1
        if bool(barren.all()) and int(self._counts[:, :_BARREN].sum()):
            first = f" The first fault was: {self._first}" if self._first else ""
            raise FormatError(f"on_error='skip' left out all rows: none is there to read.{first}")

    def _tell(self, url: str, error: FormatError) -> None:
        if not self.wanted:
            raise error from None
        self._first = self._first or str(error)
        if url in self._told or len(self._told) == _MOST_WARNINGS:
            return
        self._told.add(url)
        last = len(self._told) == _MOST_WARNINGS
        silence = " Further objects are counted without a word." if last else ""
        warnings.warn(f"left out, as on_error='skip' asks: {error}{silence}", stacklevel=3)
