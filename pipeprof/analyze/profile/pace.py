"""Find the worker that set the pace at each moment, if one did.

Main or the pin thread may take long over a batch and still keep up: a worker then already makes the
batch that is waited for next. What they do meanwhile costs no time.

To find such moments, the run is followed back from its end. Where main waited for a batch that its
worker had not made, that worker set the pace, back to where it was without work. There it waited
for main to ask, so main set the pace, back to the next batch that it waited for.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Mask, Rows
from pipeprof.analyze.profile.hand_over import in_order_received
from pipeprof.analyze.profile.worker_activity import rows_by_worker

_MOST_BETWEEN = 0.1
"""Share of the mean time to make a batch. A worker that pauses longer between two was idle."""


class Pace:
    """The spans of time in which a worker set the pace, each by a batch that was then awaited."""

    def __init__(self, columns: Columns) -> None:
        spans = _spans(columns)[::-1]
        self._rows: Rows = np.array([row for row, _, _ in spans], dtype=np.int64)
        self._start: Floats = np.array([start for _, start, _ in spans])
        self._end: Floats = np.array([end for _, _, end in spans])

    def within(self, start: Floats, end: Floats) -> tuple[Rows, Floats, Floats]:
        """Return for each interval from ``start`` to ``end`` a batch whose worker set the pace in
        its middle, and between which moments; -1 and an empty interval if main did. [intervals]"""
        if not len(self._rows):
            return np.full(len(start), -1), start, start
        span = np.maximum(0, np.searchsorted(self._start, (start + end) / 2, side="right") - 1)
        begun = np.clip(self._start[span], start, end)
        ended = np.clip(self._end[span], begun, end)
        return np.where(ended > begun, self._rows[span], -1), begun, ended


def _spans(columns: Columns) -> list[tuple[int, float, float]]:
    """Return the row of each batch that was awaited while its worker set the pace, since when it
    did, and when the batch was made; the last first."""
    found: list[tuple[int, float, float]] = []
    begun, made = _busy_since(columns), columns.fetch_end_s
    sent = np.where(np.isnan(columns.sent_s), made, columns.sent_s)
    first = _first_sent_in_turn(columns, sent)[_first_pinned_in_turn(columns, sent)]
    # the row that main had last when each batch's worker was without work
    reached = np.searchsorted(columns.delivered_s, begun, side="right") - 1
    # the row of the last awaited batch up to each row; -1 if there is none
    awaited = np.where(_awaited(columns, sent), np.arange(len(columns)), -1)
    latest = np.maximum.accumulate(awaited)
    row, end = int(latest[-1]) if len(columns) else -1, np.inf
    while row >= 0:
        batch, before = int(first[row]), row - 1
        if begun[batch] < min(end, made[batch]):
            found.append((batch, float(begun[batch]), float(min(end, made[batch]))))
            end = begun[batch]
            before = min(before, int(reached[batch]))
        row = int(latest[before]) if before >= 0 else -1
    return found


def _awaited(columns: Columns, sent_s: Floats) -> Mask:
    """Return which batches main waited for before they were sent, or pinned. [batches]"""
    ready_s = np.where(np.isnan(columns.pinned_s), sent_s, columns.pinned_s)
    awaited: Mask = (columns.worker >= 0) & (ready_s > columns.asked_s) & (columns.stall_s > 0)
    return awaited


def _first_pinned_in_turn(columns: Columns, sent_s: Floats) -> Rows:
    """Return for each batch the first of those that the pin thread pinned without a break up to it;
    the batch itself where there is no pin thread. [batches]"""
    first = np.arange(len(columns))
    if np.isfinite(columns.pinned_s).any():
        order = in_order_received(columns)
        first[order] = _first_in_turn(order, sent_s, columns.pinned_s)
    return first


def _first_sent_in_turn(columns: Columns, sent_s: Floats) -> Rows:
    """Return for each batch the first of those that its worker's feeder thread sent without a break
    up to it. [batches]"""
    first = np.arange(len(columns))
    for worker, rows in rows_by_worker(columns):
        if worker >= 0:
            first[rows] = _first_in_turn(rows, columns.fetch_end_s, sent_s)
    return first


def _first_in_turn(order: Rows, ready_s: Floats, done_s: Floats) -> Rows:
    """Return for each batch in ``order`` the first of those that a thread worked on without a break
    up to it. The thread takes a batch when it is ready and the one before is done."""
    waited = np.append(True, ~(ready_s[order[1:]] < done_s[order[:-1]]))[: len(order)]
    return order[np.maximum.accumulate(np.where(waited, np.arange(len(order)), 0))]


def _busy_since(columns: Columns) -> Floats:
    """Return since when the worker of each batch made one after the other, up to that batch; NaN
    for a batch without a record. [batches]"""
    since = np.full(len(columns), np.nan)
    for worker, rows in rows_by_worker(columns):
        if worker < 0:
            continue
        start, end = columns.fetch_start_s[rows], columns.fetch_end_s[rows]
        between = np.append(np.inf, start[1:] - end[:-1])
        most = _MOST_BETWEEN * float((end - start).mean())
        breaks = (between > most) | (np.diff(columns.epoch[rows], prepend=-1) != 0)
        since[rows] = start[np.maximum.accumulate(np.where(breaks, np.arange(len(rows)), 0))]
    return since
