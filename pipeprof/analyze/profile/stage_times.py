"""Compute the seconds per batch of each stage and each resource from the moments of the batches."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Rows, next_of_worker
from pipeprof.model import Stage

CPU, SYSTEM, RUN_QUEUE, BLOCKED, NATIVE = "cpu", "system", "run-queue", "blocked", "native-threads"

IN_WORKER = (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.FETCH, Stage.COLLATE,
             Stage.SERIALISE, Stage.PIPE, Stage.UNPICKLE, Stage.TRANSFER)  # fmt: skip


def stage_seconds(columns: Columns) -> dict[Stage, Floats]:
    """Return the seconds of every batch by stage; NaN unknown. [batches]"""
    from_worker = columns.worker >= 0
    queued, pipe, unpickle = _transfer(columns)
    reorder, ready = _queueing(columns)
    # where serialising was not observed, only batches that main was waiting for show the transfer
    awaited = columns.fetch_end_s >= columns.asked_s
    unsplit = np.where(awaited & from_worker, columns.arrived_s - columns.fetch_end_s, np.nan)
    pin_start = np.where(from_worker, columns.arrived_s, columns.fetch_end_s)
    return {
        Stage.READ: columns.read_s,
        Stage.DECODE: columns.decode_s,
        Stage.TRANSFORM: columns.transform_s,
        Stage.FETCH: columns.made_s - columns.collate_s,
        Stage.COLLATE: columns.collate_s,
        Stage.TRANSFER: np.where(np.isnan(columns.sent_s), unsplit, queued + pipe + unpickle),
        Stage.SERIALISE: columns.sent_s - np.fmax(columns.fetch_end_s, _sent_before(columns)),
        Stage.PIPE: pipe,
        Stage.UNPICKLE: unpickle,
        Stage.PIN: columns.pinned_s - pin_start,
        Stage.REORDER: reorder,
        Stage.READY: ready,
        Stage.WAIT: columns.wait_s,
        Stage.STEP: columns.step_s,
        Stage.H2D: columns.h2d_s,
    }


def deliverable_s(columns: Columns) -> Floats:
    """Return when each batch could have been delivered to main, or by its pin thread. [batches]"""
    made = np.where(np.isnan(columns.sent_s), columns.fetch_end_s, columns.sent_s)
    ready: Floats = np.where(np.isnan(columns.pinned_s), made, columns.pinned_s)
    return ready


def queue_depth(columns: Columns, capacity: int) -> Floats:
    """Return how many batches lay ready when each was asked for, at most ``capacity``. [batches]

    It is NaN in the last ``capacity`` rows, and before batches that were not sampled, because it is
    unknown what followed.
    """
    depth = np.full(len(columns), np.nan)
    ready_s = deliverable_s(columns)
    if len(columns) > capacity and not np.isnan(ready_s).any() and (columns.worker >= 0).all():
        made = np.searchsorted(np.sort(ready_s), columns.asked_s, side="right")
        taken = np.searchsorted(np.sort(columns.delivered_s), columns.asked_s, side="right")
        depth = np.clip(made - taken, 0, capacity).astype(np.float64)
        for end in (*unwatched_before(columns), len(columns)):
            depth[max(0, end - capacity) : end] = np.nan
    return depth


def unwatched_before(columns: Columns) -> Rows:
    """Return the rows before which batches of the same epoch were not sampled."""
    skipped = (np.diff(columns.nth) > 1) & (np.diff(columns.epoch) == 0)
    return np.flatnonzero(skipped) + 1


def resource_seconds(columns: Columns) -> dict[str, Floats]:
    """Return the seconds that fetching each batch spent on each resource. All but the CPU time are
    known only of batches whose resources were sampled. [batches]"""
    runnable = columns.cpu_s + columns.runqueue_s
    return {
        CPU: columns.cpu_s,
        SYSTEM: columns.system_s,
        RUN_QUEUE: columns.runqueue_s,
        BLOCKED: np.maximum(0.0, columns.made_s - runnable),
        NATIVE: np.maximum(0.0, columns.process_cpu_s - columns.cpu_s),
    }


def _transfer(columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Return the seconds of each batch in its worker, in the pipe, and to unpickle. A batch that is
    sent while main trains lies in the pipe. That is slack, so that the time of the pipe begins when
    main asks. A pin thread always asks. [batches]"""
    sent, received = columns.sent_s, columns.received_s
    pinned = np.isfinite(columns.pinned_s)
    early = received < columns.asked_s
    since = np.where(pinned, sent, np.maximum(sent, columns.asked_s))
    pipe = np.where(early & ~pinned, np.nan, np.maximum(0.0, received - since))
    return sent - columns.fetch_end_s, pipe, columns.arrived_s - received


def _sent_before(columns: Columns) -> Floats:
    """Return when the worker of each batch had sent its previous one; NaN unknown. Its feeder
    thread sends one after another. [batches]"""
    following = next_of_worker(columns, columns.index)
    sent = (following >= 0) & (columns.worker >= 0)
    before = np.full(len(columns), np.nan)
    before[following[sent]] = columns.sent_s[sent]
    return before


def _queueing(columns: Columns) -> tuple[Floats, Floats]:
    """Return the seconds of `Stage.REORDER` and `Stage.READY`. A batch is reordered until all
    previous ones could be delivered too. From then on it is ready, until main asks for it.
    [batches]"""
    ready_s = np.where(columns.worker >= 0, deliverable_s(columns), np.nan)
    before = np.concatenate([[np.nan], np.fmax.accumulate(ready_s)])[:-1]
    in_order_s = np.fmax(ready_s, before)
    return in_order_s - ready_s, np.maximum(0.0, columns.asked_s - in_order_s)
