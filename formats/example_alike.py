"""Records that are the same bytes but for floats and small integers: all of them read at once.

A writer lays out the records of a table alike; a float is four bytes whatever its value, and an
integer below 128 is one. So the first record of a block tells where they lie in all others, and one
comparison, whether that is so. Anything else is left to `pipeprof.formats.example_scan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from pipeprof.formats.example_scan import FLOAT, INT, ODD, Octets, Refused, scan
from pipeprof.formats.framing import Records
from pipeprof.formats.types import convert, is_list

_BEFORE = 4
"""Bytes of a Feature before its only value: `kind len 0a len`."""
_FLOAT, _SMALL_INT = "<f4", "u1"
_AS = {_FLOAT: np.float32, _SMALL_INT: np.int64}
_REST = 32
"""Blocks that go by before one is tried again, where one was not alike: it may have been damaged,
or of another data set."""


@dataclass(frozen=True)
class Layout:
    """Of records of one length."""

    same: Octets
    """The bits of a record that all have, and 0 for others."""
    mask: Octets
    """1 for bits that all have."""
    values: Mapping[str, tuple[str, int]]
    """Each column's type, and where its value begins; empty: the records are not alike."""

    def fits(self, records: Octets) -> bool:
        return not ((records & self.mask) != self.same).any()


@dataclass
class _Known:
    """Of records of some names and one length, in this process."""

    layout: Layout | None = None
    rest: int = 0
    """Blocks that are not to be tried."""


def decode(records: Records, schema: pa.Schema) -> pa.RecordBatch | None:
    """What `example.decode` gives and raises; ``None`` when it cannot be had in this way."""
    length = int(records.stops[0] - records.starts[0])
    steps = np.diff(records.starts)
    if not length or (records.stops - records.starts != length).any() or (steps != steps[:1]).any():
        return None
    known = _known(tuple(schema.names), length)
    if known.rest or any(is_list(field.type) for field in schema):
        known.rest = max(0, known.rest - 1)
        return None
    start, step = int(records.starts[0]), int(steps[0]) if len(steps) else length
    rows = len(records)
    table = np.ndarray((rows, length), np.uint8, records.data, start, (step, 1))
    layout = known.layout
    if layout is None or not layout.fits(table[0]):
        layout = _layout(records[0], tuple(schema.names))
    if not layout.values or not layout.fits(table):
        known.rest = _REST
        return None
    known.layout = layout
    columns = []
    for field in schema:
        kind, at = layout.values[field.name]
        cells = np.ndarray((rows,), kind, records.data, start + at, (step,)).astype(_AS[kind])
        columns.append(convert(field.name, pa.array(cells), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@lru_cache(maxsize=64)
def _known(names: tuple[str, ...], length: int) -> _Known:
    """Filled in by whoever finds it."""
    return _Known()


def _layout(payload: bytes, names: tuple[str, ...]) -> Layout:
    """Without values, unless each of ``names`` is one float or small integer in this record."""
    same = np.frombuffer(payload, np.uint8)
    mask = np.full(len(payload), 255, np.uint8)
    values: dict[str, tuple[str, int]] = {}
    try:
        entries = scan(Records.of([payload]), names, (False,) * len(names))
    except Refused:
        return Layout(same, mask, values)
    small = (entries.code == INT) & (entries.stop - entries.value == _BEFORE + 1)
    for entry in np.flatnonzero((entries.code == FLOAT) | small).tolist():
        kind, at = (_SMALL_INT if small[entry] else _FLOAT), int(entries.value[entry]) + _BEFORE
        mask[at : at + np.dtype(kind).itemsize] = 0x80 if small[entry] else 0
        if entries.column[entry] < len(names):
            values[names[entries.column[entry]]] = kind, at
    asked = np.count_nonzero(entries.column < len(names))
    # a name that is there twice has two values; what is odd may be damaged, asked for or not
    alike = len(values) == asked == len(names) and not (entries.code == ODD).any()
    return Layout(same & mask, mask, values if alike else {})
