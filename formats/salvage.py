"""What can still be decoded of rows that cannot be decoded together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from pipeprof.errors import FormatError
from pipeprof.formats.base import Fault

Rows = TypeVar("Rows")

_MOST = 200
"""Faults that are looked for one by one, at some milliseconds each; beyond, a part is left out with
the good rows in it."""


def salvaged(
    rows: Rows,
    error: FormatError,
    decode: Callable[[Rows], pa.RecordBatch],
    halve: Callable[[Rows], tuple[Rows, Rows] | None],
    lose: Callable[[Rows], int | None],
) -> Iterator[Fault | pa.RecordBatch]:
    """Of ``rows``, which ``decode`` refused with ``error``: halves of halves, until only what is
    damaged is left out.

    ``halve`` gives ``None`` for a single row; ``lose`` hears of rows that are left out, and says
    how many they are. First a fault without rows, for whoever wants none of this.
    """
    yield Fault(error, 0)
    left, faults = [rows], 0
    while left:
        part = left.pop()
        try:
            batch = decode(part)
        except FormatError as error:
            halves = halve(part) if faults < _MOST else None
            if halves is None:
                faults += 1
                yield Fault(error, lose(part))
            else:
                left += reversed(halves)
        else:
            if batch.num_rows:
                yield batch
