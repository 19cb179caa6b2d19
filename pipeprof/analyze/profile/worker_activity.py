"""Tell what each worker did between any two moments, from the records of its batches.

For each worker and activity a function of time gives the seconds spent on it so far. The seconds
between two moments are the difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Rows
from pipeprof.analyze.profile.stage_times import unwatched_before
from pipeprof.model import Stage

STAGES = tuple(
    str(stage) for stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.FETCH, Stage.COLLATE)
)
SENDING = "sending"
"""Activity between batches, while the feeder thread serialises the previous one."""
STARTING = "starting"
"""Activity from the beginning of an epoch to the worker's first batch."""
UNRECORDED = "unrecorded"
"""Activity next to batches without records, in which the worker may have fetched one of these."""
IDLE = "idle"
"""Time between batches in which the worker does nothing."""


class Activity:
    """The activity of all workers with batches in ``columns``; of main (-1) without workers."""

    def __init__(self, columns: Columns) -> None:
        self._worker = columns.worker
        stretch = _stretches(columns)
        self._spent = {
            worker: _spent_by(columns, rows, stretch) for worker, rows in rows_by_worker(columns)
        }

    def between(self, rows: Rows, start: Floats, end: Floats) -> dict[str, Floats]:
        """Return what the workers of the batches in ``rows`` did between ``start`` and ``end``.

        The seconds of `STAGES`, `SENDING`, `STARTING`, `IDLE` and `UNRECORDED` add up to
        ``end - start``, or to 0 where that is negative. [rows]
        """
        length = np.maximum(0.0, end - start)
        spent = {name: np.zeros(len(rows)) for name in (*STAGES, SENDING, STARTING, UNRECORDED)}
        workers = self._worker[rows]
        known = np.zeros(len(rows), dtype=bool)
        for worker, activities in self._spent.items():
            own = workers == worker
            known |= own
            own &= length > 0
            if own.any():
                for name, seconds in activities.items():
                    spent[name][own] = seconds.between(start[own], end[own])
        spent[UNRECORDED] = np.where(known, spent[UNRECORDED], length)
        # records that contradict one another may add up to more time than there was
        scale = length / np.maximum(sum(spent.values()), np.maximum(length, 1e-12))
        spent = {name: seconds * scale for name, seconds in spent.items()}
        spent[IDLE] = np.maximum(0.0, length - sum(spent.values()))
        return spent

    def fetching(self, start: Floats, end: Floats) -> Floats:
        """Return the mean number of workers that fetched batches between ``start`` and ``end``.
        [intervals]"""
        spent = np.zeros(len(start))
        for activities in self._spent.values():
            spent += sum(activities[name].between(start, end) for name in STAGES)
        return spent / np.maximum(end - start, 1e-12)


class _SpentTime:
    """The seconds spent on an activity so far, which rise evenly by ``seconds`` in each interval
    from ``start`` to ``end``. The intervals are in order of time."""

    def __init__(self, start: Floats, end: Floats, seconds: Floats) -> None:
        total = np.cumsum(seconds)
        self._moments = np.maximum.accumulate(np.stack([start, end], axis=1).ravel())
        self._total = np.stack([total - seconds, total], axis=1).ravel()

    def between(self, start: Floats, end: Floats) -> Floats:
        """Return the seconds spent between ``start`` and ``end``."""
        at_end: Floats = np.interp(end, self._moments, self._total)
        return at_end - np.interp(start, self._moments, self._total)


def rows_by_worker(columns: Columns) -> Iterator[tuple[float, Rows]]:
    """Yield each worker, and the rows of its recorded batches in the order of their fetches; main
    is -1."""
    known = np.isfinite(columns.fetch_start_s) & np.isfinite(columns.fetch_end_s)
    for worker in np.unique(columns.worker[known]):
        rows = np.flatnonzero(known & (columns.worker == worker))
        yield float(worker), rows[np.argsort(columns.fetch_start_s[rows], kind="stable")]


def _stretches(columns: Columns) -> Rows:
    """Return a number for each stretch of consecutive sampled batches of an epoch. [batches]"""
    begins = np.diff(columns.epoch, prepend=columns.epoch[:1]) != 0
    begins[unwatched_before(columns)] = True
    return np.cumsum(begins)


def _spent_by(columns: Columns, rows: Rows, stretch: Rows) -> dict[str, _SpentTime]:
    """Return the time that one worker, whose batches are in ``rows``, spent on each activity."""
    start, end = columns.fetch_start_s[rows], columns.fetch_end_s[rows]
    spent = {name: _SpentTime(*parts) for name, parts in _in_fetch(columns.at(rows)).items()}

    first = np.flatnonzero(np.diff(stretch[rows], prepend=-1))
    following = np.append(start[1:], np.inf)
    following[first[1:] - 1] = end[first[1:] - 1]  # activity between stretches is unknown
    sent = np.clip(np.nan_to_num(columns.sent_s[rows], nan=-np.inf), end, np.fmax(end, following))
    spent[SENDING] = _SpentTime(end, sent, sent - end)

    last = np.append(first[1:], len(rows)) - 1
    # an epoch begins when its first batch is asked for
    head = np.searchsorted(stretch, stretch[rows[first]])
    asked = np.fmin(columns.asked_s[head], start[first])
    begun = np.where(columns.nth[head] == 0, asked, start[first])
    spent[STARTING] = _SpentTime(begun, start[first], start[first] - begun)
    before, after = np.append(-_FOREVER_S, end[last]), np.append(begun, _FOREVER_S)
    spent[UNRECORDED] = _SpentTime(before, after, np.maximum(0.0, after - before))
    return spent


_FOREVER_S = 1e9


def _in_fetch(columns: Columns) -> dict[str, tuple[Floats, Floats, Floats]]:
    """Return by stage when it began and ended in each batch of one worker, and its seconds. Stages
    that alternate within a batch are each spread over the whole fetch. [batches]"""
    parts = [np.nan_to_num(getattr(columns, f"{name}_s")) for name in STAGES[:3]]
    made_s = np.maximum(0.0, columns.made_s)
    end = columns.fetch_end_s - np.clip(np.nan_to_num(columns.collate_s), 0.0, made_s)
    fetch_s = np.maximum(0.0, end - columns.fetch_start_s)
    scale = fetch_s / np.maximum(sum(parts), np.maximum(fetch_s, 1e-12))
    parts = [part * scale for part in parts]
    alternate = columns.turns > sum((part > 0).astype(float) for part in parts)
    intervals, moment = {}, columns.fetch_start_s
    for name, seconds in zip(STAGES[:4], [*parts, fetch_s - sum(parts)], strict=True):
        begun, moment = moment, moment + seconds
        intervals[name] = (
            np.where(alternate, columns.fetch_start_s, begun),
            np.where(alternate, end, moment),
            seconds,
        )
    intervals[STAGES[4]] = end, columns.fetch_end_s, columns.fetch_end_s - end
    return intervals
