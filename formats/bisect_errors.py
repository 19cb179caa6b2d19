"""Find the damaged rows among many by bisection, so that all others are still decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from pipeprof.errors import FormatError
from pipeprof.formats.base import Fault

Rows = TypeVar("Rows")

_MOST_FAULTS = 200
"""The most rows that are found one by one, at some milliseconds each. After that, a damaged part is
left out whole, with its good rows."""


def decode_undamaged(
    rows: Rows,
    decode: Callable[[Rows], pa.RecordBatch],
    halve: Callable[[Rows], tuple[Rows, Rows] | None],
    lose: Callable[[Rows], int | None],
) -> Iterator[Fault | pa.RecordBatch]:
    """Decode ``rows``; where that fails, halves of halves until only damaged rows are left out.

    The first fault loses no rows yet, for a driver that stops at the first error.

    Args:
        rows: What ``decode`` takes.
        decode: Raises `FormatError` for rows of which some are damaged.
        halve: Gives ``None`` for a single row.
        lose: Called with rows that are left out; returns how many they are, if known.
    """
    left, faults, first = [rows], 0, True
    while left:
        part = left.pop()
        try:
            batch = decode(part)
        except FormatError as error:
            if first:
                yield Fault(error, 0)
            halves = halve(part) if faults < _MOST_FAULTS else None
            if halves is None:
                faults += 1
                yield Fault(error, lose(part))
            else:
                left += reversed(halves)
        else:
            if batch.num_rows:
                yield batch
        first = False
