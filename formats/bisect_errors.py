"""Finds the damaged rows among many by bisection, so that all others are still decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from pipeprof.errors import FormatError
from pipeprof.formats.base import Fault

Rows = TypeVar("Rows")

_MOST_FAULTS = 200
"""Located one by one, at some milliseconds each. Beyond, a part is left out whole, with its good
rows."""


def bisect_errors(
    rows: Rows,
    error: FormatError,
    decode: Callable[[Rows], pa.RecordBatch],
    halve: Callable[[Rows], tuple[Rows, Rows] | None],
    lose: Callable[[Rows], int | None],
) -> Iterator[Fault | pa.RecordBatch]:
    """Decode halves of halves of ``rows`` until only damaged ones are left out.

    The first item is a fault that loses no rows yet, for a driver that stops at the first error.

    Args:
        rows: Refused by ``decode`` with ``error``.
        halve: Gives ``None`` for a single row.
        lose: Called with rows that are left out; returns how many they are, if known.
    """
    yield Fault(error, 0)
    left, faults = [rows], 0
    while left:
        part = left.pop()
        try:
            batch = decode(part)
        except FormatError as error:
            halves = halve(part) if faults < _MOST_FAULTS else None
            if halves is None:
                faults += 1
                yield Fault(error, lose(part))
            else:
                left += reversed(halves)
        else:
            if batch.num_rows:
                yield batch
