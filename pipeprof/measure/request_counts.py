"""Requests, counted into a table of fixed size: a row per process that makes batches.

A row is written by one process and read by main, and nothing locks: every cell is an aligned
double of its own, so that main sees each as it was before or after, if not all at the same moment.
Sizes and times are counted by bins, 16 to a doubling, so that a quantile is within 3 %.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from contextlib import suppress
from math import frexp, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.measure.requests import Note, taken_overflow, waiting
from pipeprof.measure.shared import SharedMemory
from pipeprof.measure.stage_timer import Tally
from pipeprof.model import Histogram, RequestLog

Floats = npt.NDArray[np.float64]

_PER_DOUBLING = 16
_SHORTEST, _TIMES = -19, 30 * _PER_DOUBLING
"""From a microsecond to ten minutes; what is beyond falls into the last bin."""
_SMALLEST, _SIZES = 1, 42 * _PER_DOUBLING
"""From one byte to four terabytes."""

SUMS = ("count", "bytes", "seconds", "first_byte_count", "first_byte_s", "size_squares",
        "seconds_squares", "size_seconds", "retries", "throttled", "failed", "lost", "busy_s",
        "store_s", "store_cpu_s", "looked_s", "waited_s")  # fmt: skip
(_COUNT, _BYTES, _SECONDS, _FIRST_COUNT, _FIRST_S, _SIZE2, _SECONDS2, _PRODUCT, _RETRIES,
 _THROTTLED, _FAILED, _LOST, _BUSY_S, _STORE_S, _STORE_CPU_S, _LOOKED_S,
 _WAITED_S) = range(len(SUMS))  # fmt: skip
_WHOLE = ("count", "bytes", "first_byte_count", "retries", "throttled", "failed", "lost")
_BEGAN, _ENDED, _CHARGES = range(len(SUMS), len(SUMS) + 3)
_LATENCIES = _CHARGES + 1
_FIRST_BYTES = _LATENCIES + _TIMES
_SIZE_BINS = _FIRST_BYTES + _TIMES
_CELLS = _SIZE_BINS + _SIZES


class RequestCounts:
    """One process's row. Without ``cells`` it has memory of its own."""

    def __init__(self, cells: Any = None) -> None:
        self._cells = memoryview(array("d", bytes(8 * _CELLS))) if cells is None else cells

    def take(self) -> None:
        """Count the notes that wait."""
        notes = []
        with suppress(IndexError):  # another thread has taken the last
            while waiting:
                notes.append(waiting.popleft())
        self.add(notes)
        self._cells[_LOST] += taken_overflow()

    def add(self, notes: Iterable[Note]) -> None:
        """Count them, in the order in which their requests began."""
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
            sums[_SIZE2] += size * size
            sums[_SECONDS2] += seconds * seconds
            sums[_PRODUCT] += size * seconds
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
        """Of a batch: how often a stage or a read was clocked, whether it was a request or not, and
        what it waited for its store."""
        cells = self._cells
        cells[_CHARGES] += tally.charges
        if tally.store_s:
            cells[_STORE_S] += tally.store_s
            cells[_STORE_CPU_S] += tally.store_cpu_s
            cells[_LOOKED_S] += tally.looked_s
            cells[_WAITED_S] += tally.waited_s

    def rows(self) -> Floats:
        """[1, cells]; a copy."""
        row: Floats = np.array(self._cells)
        return row[None]


class RequestTable:
    """Rows of ``workers`` processes in memory that they share with main. Linux only: raises OSError
    elsewhere."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._shared = SharedMemory(8 * _CELLS * workers)

    def row(self, worker: int) -> RequestCounts:
        """Of that worker, to be written by it alone. Where the memory cannot be had, what it counts
        is lost."""
        if self._shared.view is None:
            return RequestCounts()
        first = worker * _CELLS
        return RequestCounts(memoryview(self._shared.view).cast("d")[first : first + _CELLS])

    def rows(self) -> Floats:
        """[workers, cells]; a copy."""
        if self._shared.view is None:
            return np.zeros((0, _CELLS))
        rows: Floats = np.frombuffer(self._shared.view).reshape(self._workers, _CELLS).copy()
        return rows


def _bin(value: float, lowest: int, count: int) -> int:
    """Of values in [2^(lowest-1), …): the place within each doubling is linear."""
    fraction, exponent = frexp(value)
    place = (exponent - lowest) * _PER_DOUBLING + int((fraction - 0.5) * 2 * _PER_DOUBLING)
    return place if 0 <= place < count else 0 if place < 0 else count - 1


def _middles(lowest: int, count: int) -> Floats:
    places = np.arange(count)
    fraction = 0.5 + (places % _PER_DOUBLING + 0.5) / (2 * _PER_DOUBLING)
    middles: Floats = np.ldexp(fraction, places // _PER_DOUBLING + lowest)
    return middles


class RequestTotals:
    """Of all passes over a loader. The tables of the last few are looked at when asked; what older
    ones held is added up, as nobody writes there any more."""

    _OPEN = 4

    def __init__(self) -> None:
        self._open: list[RequestCounts | RequestTable] = []
        self._earlier = np.zeros((0, _CELLS))

    def add(self, table: RequestCounts | RequestTable) -> None:
        """Of a pass that begins."""
        self._open.append(table)
        if len(self._open) > self._OPEN:
            self._earlier = _merged([self._earlier, self._open.pop(0).rows()])[None]

    @property
    def charges(self) -> int:
        """How often a stage or a read was clocked."""
        return int(self._added()[_CHARGES])

    def log(self) -> RequestLog:
        merged = self._added()
        sums = dict(zip(SUMS, merged.tolist(), strict=False))
        return RequestLog(
            began_s=float(merged[_BEGAN]),
            ended_s=float(merged[_ENDED]),
            latencies=_histogram(merged[_LATENCIES:_FIRST_BYTES], _SHORTEST),
            first_bytes=_histogram(merged[_FIRST_BYTES:_SIZE_BINS], _SHORTEST),
            sizes=_histogram(merged[_SIZE_BINS:], _SMALLEST),
            **{name: int(sums[name]) if name in _WHOLE else sums[name] for name in SUMS},
        )

    def _added(self) -> Floats:
        return _merged([self._earlier, *(table.rows() for table in self._open)])


def _merged(tables: list[Floats]) -> Floats:
    """[cells]"""
    every = np.concatenate(tables)
    merged: Floats = every.sum(axis=0)
    used = every[every[:, _COUNT] > 0]
    if len(used):
        merged[_BEGAN], merged[_ENDED] = used[:, _BEGAN].min(), used[:, _ENDED].max()
    return merged


def _histogram(counts: Floats, lowest: int) -> Histogram:
    middles = _middles(lowest, len(counts))
    return tuple(
        (float(middles[place]), int(counts[place])) for place in np.flatnonzero(counts).tolist()
    )
