"""Seconds per batch of each stage, from the moments in a batch log."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.analyze.stats import summarise
from pipeprof.model import Source, Stage, StageStats, WorkerStats


def stage_seconds(columns: Columns) -> dict[Stage, Floats]:
    """NaN where a batch's stage is not known."""
    fetch = columns.fetch_end_s - columns.fetch_start_s - columns.collate_s
    # main unpickles only when it asks: a batch that came before that lay ready in the queue
    awaited = columns.fetch_end_s >= columns.asked_s
    from_worker = columns.worker >= 0
    ready = np.maximum(0.0, columns.asked_s - columns.fetch_end_s)
    turn = np.concatenate([[np.nan], columns.delivered_s[:-1]])
    early = np.isfinite(columns.arrived_s) & from_worker
    return {
        Stage.READ: columns.read_s,
        Stage.DECODE: columns.decode_s,
        Stage.TRANSFORM: columns.transform_s,
        Stage.FETCH: fetch,
        Stage.COLLATE: columns.collate_s,
        Stage.TRANSFER: np.where(
            awaited & from_worker, columns.arrived_s - columns.fetch_end_s, np.nan
        ),
        Stage.REORDER: np.where(early, np.maximum(0.0, turn - columns.arrived_s), np.nan),
        Stage.READY: np.where(from_worker, ready, np.nan),
        Stage.WAIT: columns.wait_s,
        Stage.STEP: columns.step_s,
    }


_SOURCES: Mapping[Stage, Source] = {Stage.READY: "estimated"}
"""The rest is measured. Ready includes the transfer of a batch that lay in the queue."""


def stage_stats(columns: Columns) -> dict[str, StageStats]:
    """Stages that took no time in any batch of a black-box data set are left out."""
    result = {}
    for stage, seconds in stage_seconds(columns).items():
        inside = stage in (Stage.READ, Stage.DECODE, Stage.TRANSFORM)
        if inside and not np.nansum(seconds):
            continue
        io = (columns.bytes, columns.requests) if stage is Stage.READ else (None, None)
        stats = summarise(seconds, _SOURCES.get(stage, "measured"), *io)
        if stats is not None:
            result[str(stage)] = stats
    return result


def worker_stats(columns: Columns) -> tuple[WorkerStats, ...]:
    """Each worker's own stages; none when it is not known who made what."""
    in_worker = {str(stage) for stage in list(Stage)[: list(Stage).index(Stage.TRANSFER) + 1]}
    result = []
    for worker in sorted({int(number) for number in columns.worker if number > -2}):
        own = columns.take(columns.worker == worker)
        stages = {name: stats for name, stats in stage_stats(own).items() if name in in_worker}
        result.append(WorkerStats(worker, len(own), stages))
    return tuple(result)
