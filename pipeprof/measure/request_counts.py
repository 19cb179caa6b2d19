"""Count storage requests in a table of fixed size, with a row for each process that makes batches.

One process writes a row, and main reads it without locks. Each cell is an aligned double: main
finds its old or its new value, but maybe not all cells of the same moment.
Sizes and times are counted in bins, 16 to a doubling, so that a quantile is within 3 %.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from math import frexp, inf
from typing import Any

import numpy as np

from pipeprof.measure.requests import Note, pending_notes, take_lost_count
from pipeprof.measure.ring import Floats
from pipeprof.measure.shared import SharedMemory
from pipeprof.measure.stage_timer import Tally
from pipeprof.model import Histogram, RequestLog

_BINS_PER_DOUBLING = 16
_SHORTEST, _TIMES = -19, 30 * _BINS_PER_DOUBLING
"""Exponent of the first time bin, and their number: from 1 µs to 10 min. What is outside falls
into the first or last bin."""
_SMALLEST, _SIZES = 1, 42 * _BINS_PER_DOUBLING
"""The same of sizes: from one byte to four terabytes."""

SUMS = ("count", "bytes", "seconds", "first_byte_count", "first_byte_s", "size_squares",
        "seconds_squares", "size_seconds", "retries", "throttled", "failed", "lost", "busy_s",
        "store_s", "store_cpu_s", "looked_s", "waited_s")  # fmt: skip
(_COUNT, _BYTES, _SECONDS, _FIRST_COUNT, _FIRST_S, _SIZE_SQUARES, _SECONDS_SQUARES,
 _SIZE_SECONDS, _RETRIES, _THROTTLED, _FAILED, _LOST, _BUSY_S, _STORE_S, _STORE_CPU_S, _LOOKED_S,
 _WAITED_S) = range(len(SUMS))  # fmt: skip
_INTEGERS = ("count", "bytes", "first_byte_count", "retries", "throttled", "failed", "lost")
_BEGAN, _ENDED, _CHARGES = range(len(SUMS), len(SUMS) + 3)
_LATENCIES = _CHARGES + 1
_FIRST_BYTES = _LATENCIES + _TIMES
_SIZE_BINS = _FIRST_BYTES + _TIMES
_CELLS = _SIZE_BINS + _SIZES


def own_cells() -> Any:
    """Return the cells of one row that nobody else has."""
    return memoryview(array("d", bytes(8 * _CELLS)))


class RequestCounts:
    """The counts of one process, in a row of a `RequestTable` or, without ``open_cells``, in memory
    of its own. The memory is opened once it is needed."""

    def __init__(self, open_cells: Callable[[], Any] = own_cells) -> None:
        self._open_cells = open_cells

    @cached_property
    def _cells(self) -> Any:
        return self._open_cells()

    def count_pending(self) -> None:
        """Count all pending notes of this process."""
        notes = []
        with suppress(IndexError):  # another thread may take the last
            while pending_notes:
                notes.append(pending_notes.popleft())
        self.add(notes)
        self._cells[_LOST] += take_lost_count()

    def add(self, notes: Iterable[Note]) -> None:
        """Count ``notes`` in the order in which their requests began."""
        cells, sums = self._cells, [0.0] * len(SUMS)
        began_s, ended_s = inf, cells[_ENDED]
        for note in sorted(notes):
            start_s, first_byte_s, end_s, size, retries, throttled, failed = note
            sums[_RETRIES] += retries
            sums[_THROTTLED] += throttled
            if failed:
                sums[_FAILED] += 1
                continue
            seconds = max(0.0, end_s - start_s)
            sums[_BUSY_S] += max(0.0, end_s - max(start_s, ended_s))
            began_s, ended_s = min(began_s, start_s), max(ended_s, end_s)
            sums[_COUNT] += 1
            sums[_BYTES] += size
            sums[_SECONDS] += seconds
            sums[_SIZE_SQUARES] += size * size
            sums[_SECONDS_SQUARES] += seconds * seconds
            sums[_SIZE_SECONDS] += size * seconds
            cells[_LATENCIES + _bin(seconds, _SHORTEST, _TIMES)] += 1
            cells[_SIZE_BINS + _bin(size, _SMALLEST, _SIZES)] += 1
            if first_byte_s == first_byte_s:
                waited_s = max(0.0, first_byte_s - start_s)
                sums[_FIRST_COUNT] += 1
                sums[_FIRST_S] += waited_s
                cells[_FIRST_BYTES + _bin(waited_s, _SHORTEST, _TIMES)] += 1
        if sums[_COUNT]:
            cells[_BEGAN] = min(began_s, cells[_BEGAN]) if cells[_COUNT] else began_s
            cells[_ENDED] = ended_s
        for place, value in enumerate(sums):
            if value:
                cells[place] += value

    def add_tally(self, tally: Tally) -> None:
        """Add a batch's clocked stages and reads, and its wait for the store."""
        if not tally.charges and not tally.store_s:
            return
        cells = self._cells
        cells[_CHARGES] += tally.charges
        if tally.store_s:
            cells[_STORE_S] += tally.store_s
            cells[_STORE_CPU_S] += tally.store_cpu_s
            cells[_LOOKED_S] += tally.looked_s
            cells[_WAITED_S] += tally.waited_s

    def any(self) -> bool:
        """Return whether a stage or a read was clocked, or a request was counted."""
        return bool(self._cells[_CHARGES] or self._cells[_COUNT])

    def rows(self) -> Floats:
        """Return a copy of the counts: [1, cells]."""
        row: Floats = np.array(self._cells)
        return row[None]


class RequestTable:
    """The rows of ``workers`` processes, in memory that they share with main. It works on Linux
    only, and raises OSError elsewhere."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._shared = SharedMemory(8 * _CELLS * workers)

    def cells(self, worker: int) -> Any:
        """Return the row that ``worker`` alone writes. Where it cannot open the memory, its counts
        are lost."""
        if self._shared.view is None:
            return own_cells()
        first = worker * _CELLS
        return memoryview(self._shared.view).cast("d")[first : first + _CELLS]

    def rows(self) -> Floats:
        """Return a copy of all rows: [workers, cells]."""
        if self._shared.view is None:
            return np.zeros((0, _CELLS))
        rows: Floats = np.frombuffer(self._shared.view).reshape(self._workers, _CELLS).copy()
        return rows


def _bin(value: float, lowest: int, count: int) -> int:
    """Return the bin of a value among ``count`` from 2^(lowest-1) on, linear in each doubling."""
    fraction, exponent = frexp(value)
    index = (exponent - lowest) * _BINS_PER_DOUBLING + int(
        (fraction - 0.5) * 2 * _BINS_PER_DOUBLING
    )
    return index if 0 <= index < count else 0 if index < 0 else count - 1


def _bin_middles(lowest: int, count: int) -> Floats:
    bins = np.arange(count)
    fraction = 0.5 + (bins % _BINS_PER_DOUBLING + 0.5) / (2 * _BINS_PER_DOUBLING)
    middles: Floats = np.ldexp(fraction, bins // _BINS_PER_DOUBLING + lowest)
    return middles


class RequestTotals:
    """The request counts of all passes over a loader. The tables of the last few passes stay open.
    Older ones, which nobody writes any more, are added up."""

    _MOST_OPEN = 4

    def __init__(self) -> None:
        self._open: list[RequestCounts | RequestTable] = []
        self._earlier = np.zeros((0, _CELLS))

    def add(self, table: RequestCounts | RequestTable) -> None:
        """Add the table of a pass that begins."""
        self._open.append(table)
        if len(self._open) > self._MOST_OPEN:
            self._earlier = _merged([self._earlier, self._open.pop(0).rows()])[None]

    @property
    def charges(self) -> int:
        """How often a stage or a read was clocked."""
        return int(self._merged_all()[_CHARGES])

    def log(self) -> RequestLog:
        merged = self._merged_all()
        sums = dict(zip(SUMS, merged.tolist(), strict=False))
        return RequestLog(
            began_s=float(merged[_BEGAN]),
            ended_s=float(merged[_ENDED]),
            latencies=_histogram(merged[_LATENCIES:_FIRST_BYTES], _SHORTEST),
            first_bytes=_histogram(merged[_FIRST_BYTES:_SIZE_BINS], _SHORTEST),
            sizes=_histogram(merged[_SIZE_BINS:], _SMALLEST),
            **{name: int(sums[name]) if name in _INTEGERS else sums[name] for name in SUMS},
        )

    def _merged_all(self) -> Floats:
        return _merged([self._earlier, *(table.rows() for table in self._open)])


def _merged(tables: list[Floats]) -> Floats:
    """Return one row for all rows of ``tables``."""
    rows = np.concatenate(tables)
    merged: Floats = rows.sum(axis=0)
    used = rows[rows[:, _COUNT] > 0]
    if len(used):
        merged[_BEGAN], merged[_ENDED] = used[:, _BEGAN].min(), used[:, _ENDED].max()
    return merged


def _histogram(counts: Floats, lowest: int) -> Histogram:
    middles = _bin_middles(lowest, len(counts))
    return tuple((float(middles[index]), int(counts[index])) for index in np.flatnonzero(counts))
