"""Made-up runs, changed: with more figures, other settings, slow batches, a slow main process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeprof.analyze.assemble import assemble
from pipeprof.model import Epoch, MainProcess, Recording
from tests.analyze.pipelines import workers_run


def seen(recording: Recording, main: MainProcess | None = None, **columns: Any) -> Recording:
    """``recording`` with ``columns``, each one figure for all batches, or a column."""
    count = len(recording.batches.index)
    whole = {
        name: value if isinstance(value, tuple) else (value,) * count
        for name, value in columns.items()
    }
    batches = replace(recording.batches, **whole)
    return replace(recording, batches=batches, main=main or recording.main)


def set_to(recording: Recording, **settings: Any) -> Recording:
    return replace(recording, config=replace(recording.config, **settings))


def found(recording: Recording) -> dict[str, str]:
    """Code → evidence and fix, a line each."""
    return {
        finding.code: f"{finding.evidence}\n{finding.fix}"
        for finding in assemble(recording).findings
    }


def slow_batches(every: int = 10, batches: int = 120, **settings: Any) -> Recording:
    """Each ``every``-th batch takes ten times as long, and the loop waits for it."""
    recording = workers_run(batches, fetch_s=0.010, step_s=0.010)
    log = recording.batches
    slow = [index % every == 9 for index in log.index]
    starts = tuple(start - 0.09 * late for start, late in zip(log.fetch_start_s, slow, strict=True))
    asked = tuple(moment - 0.05 * late for moment, late in zip(log.asked_s, slow, strict=True))
    return set_to(seen(recording, fetch_start_s=starts, asked_s=asked), **settings)


def transferred(**columns: Any) -> Recording:
    """Main spends 8 ms on receiving a batch that is made in 2."""
    recording = workers_run(200, fetch_s=0.002, transfer_s=0.032, step_s=0.002)
    return seen(recording, **columns)


def later(recording: Recording, **stops: int) -> Recording:
    """Each turn of the loop lasts 10 ms longer, before those moments that are a stop on."""
    moved = {
        name: tuple(
            moment + 0.01 * (row + stop)
            for row, moment in enumerate(getattr(recording.batches, name))
        )
        for name, stop in stops.items()
    }
    return seen(recording, **moved)


def epochs(count: int, first_batch_s: float, closing_s: float) -> tuple[Epoch, ...]:
    return tuple(
        Epoch(index, 2.0 * index, 30, 2.0, 0.05, first_batch_s, closing_s) for index in range(count)
    )
