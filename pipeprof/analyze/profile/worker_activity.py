"""What each worker was doing between any two moments, from the records of its batches.

Per worker and activity there is a line: the seconds that the worker had spent on it by a moment.
Between two moments it spent the difference.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Rows
from pipeprof.analyze.profile.stage_times import unwatched_before
from pipeprof.model import Stage

STAGES = tuple(
    str(stage) for stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.FETCH, Stage.COLLATE)
)
SENDING = "sending"
"""Between batches, while the feeder thread serialises the previous one."""
STARTING = "starting"
"""From the begin of an epoch to the worker's first batch."""
UNRECORDED = "unrecorded"
"""Before or after batches that have records: the worker may have been at another."""
IDLE = "idle"
"""Between batches, doing nothing."""


class Activity:
    """Activity of all workers whose batches are in ``columns``; of main (-1) without workers."""

    def __init__(self, columns: Columns) -> None:
        self._worker = columns.worker
        known = np.isfinite(columns.fetch_start_s) & np.isfinite(columns.fetch_end_s)
        stretch = _stretches(columns)
        self._lines = {
            worker: _lines(columns, np.flatnonzero(known & (self._worker == worker)), stretch)
            for worker in np.unique(self._worker[known])
        }

    def between(self, rows: Rows, start: Floats, end: Floats) -> dict[str, Floats]:
        """Of the workers of the batches in ``rows``: the seconds between ``start`` and ``end``
        spent on each of `STAGES`, `SENDING`, `STARTING`, `IDLE` and `UNRECORDED`, which add up to
        ``end - start``. [rows] each; none where that is negative."""
        length = np.maximum(0.0, end - start)
        spent = {name: np.zeros(len(rows)) for name in (*STAGES, SENDING, STARTING, UNRECORDED)}
        workers = self._worker[rows]
        known = np.zeros(len(rows), dtype=bool)
        for worker, lines in self._lines.items():
            own = workers == worker
            known |= own
            own &= length > 0
            if own.any():
                for name, line in lines.items():
                    spent[name][own] = line.between(start[own], end[own])
        spent[UNRECORDED] = np.where(known, spent[UNRECORDED], length)
        # records that contradict one another may add up to more time than there was
        fits = length / np.maximum(sum(spent.values()), np.maximum(length, 1e-12))
        spent = {name: seconds * fits for name, seconds in spent.items()}
        spent[IDLE] = np.maximum(0.0, length - sum(spent.values()))
        return spent

    def fetching(self, start: Floats, end: Floats) -> Floats:
        """Workers that fetched batches between ``start`` and ``end``, on average. [intervals]"""
        spent = np.zeros(len(start))
        for lines in self._lines.values():
            spent += sum(lines[name].between(start, end) for name in STAGES)
        return spent / np.maximum(end - start, 1e-12)


class _Line:
    """Rises evenly by ``seconds`` from each start to its end. The pieces follow one another."""

    def __init__(self, start: Floats, end: Floats, seconds: Floats) -> None:
        reached = np.cumsum(seconds)
        self._moments = np.maximum.accumulate(np.stack([start, end], axis=1).ravel())
        self._reached = np.stack([reached - seconds, reached], axis=1).ravel()

    def between(self, start: Floats, end: Floats) -> Floats:
        at_end: Floats = np.interp(end, self._moments, self._reached)
        return at_end - np.interp(start, self._moments, self._reached)


def _stretches(columns: Columns) -> Rows:
    """Numbers the stretches of consecutive batches: of one epoch, and all sampled."""
    begins = np.diff(columns.epoch, prepend=columns.epoch[:1]) != 0
    begins[unwatched_before(columns)] = True
    return np.cumsum(begins)


def _lines(columns: Columns, rows: Rows, stretch: Rows) -> dict[str, _Line]:
    """The lines of one worker, whose batches are in ``rows``, by activity."""
    rows = rows[np.argsort(columns.fetch_start_s[rows], kind="stable")]
    start, end = columns.fetch_start_s[rows], columns.fetch_end_s[rows]
    lines = {name: _Line(*pieces) for name, pieces in _in_fetch(columns.at(rows)).items()}

    first = np.flatnonzero(np.diff(stretch[rows], prepend=-1))
    following = np.append(start[1:], np.inf)
    following[first[1:] - 1] = end[first[1:] - 1]  # what came between stretches is not known
    sent = np.clip(np.nan_to_num(columns.sent_s[rows], nan=-np.inf), end, np.fmax(end, following))
    lines[SENDING] = _Line(end, sent, sent - end)

    last = np.append(first[1:], len(rows)) - 1
    # an epoch begins when its first batch is asked for
    head = np.searchsorted(stretch, stretch[rows[first]])
    asked = np.fmin(columns.asked_s[head], start[first])
    begun = np.where(columns.nth[head] == 0, asked, start[first])
    lines[STARTING] = _Line(begun, start[first], start[first] - begun)
    before, after = np.append(-_FOREVER, end[last]), np.append(begun, _FOREVER)
    lines[UNRECORDED] = _Line(before, after, np.maximum(0.0, after - before))
    return lines


_FOREVER = 1e9


def _in_fetch(columns: Columns) -> dict[str, tuple[Floats, Floats, Floats]]:
    """When each stage of one worker's batches began and ended, and its seconds, in their order.
    Stages that alternate within a batch are each spread over the whole fetch."""
    parts = [np.nan_to_num(getattr(columns, f"{name}_s")) for name in STAGES[:3]]
    made_s = np.maximum(0.0, columns.made_s)
    end = columns.fetch_end_s - np.clip(np.nan_to_num(columns.collate_s), 0.0, made_s)
    fetch_s = np.maximum(0.0, end - columns.fetch_start_s)
    fits = fetch_s / np.maximum(sum(parts), np.maximum(fetch_s, 1e-12))
    parts = [part * fits for part in parts]
    alternate = columns.turns > sum((part > 0).astype(float) for part in parts)
    pieces, moment = {}, columns.fetch_start_s
    for name, seconds in zip(STAGES[:4], [*parts, fetch_s - sum(parts)], strict=True):
        begun, moment = moment, moment + seconds
        pieces[name] = (
            np.where(alternate, columns.fetch_start_s, begun),
            np.where(alternate, end, moment),
            seconds,
        )
    pieces[STAGES[4]] = end, columns.fetch_end_s, columns.fetch_end_s - end
    return pieces
