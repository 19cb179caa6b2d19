"""What a run is too short, or too little seen, to say."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import Seen, case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT
from pipeprof.units import counted


@case("too-few-batches", "Too few batches to say")
def too_few(facts: Facts) -> Seen | None:
    """Too few batches were measured for a verdict.

    Seen by counting them. Cured by a longer run.
    """
    measured = facts.summary.measured
    if measured >= LEAST_BATCHES_FOR_VERDICT:
        return None
    return Seen(
        f"{counted(measured, 'batch')} of {facts.summary.total} measured after warm-up; a verdict "
        f"needs {LEAST_BATCHES_FOR_VERDICT}.",
        "Run longer: more epochs, or more data.",
    )


@case("lost-records", "Some batches could not be seen being made")
def lost(facts: Facts) -> Seen | None:
    """Some records of batches did not arrive from their workers.

    Seen by batches that were delivered and never told of, as when a worker was killed. Their stall
    is charged to *unknown*.
    """
    lost = facts.recording.lost_records
    if not lost:
        return None
    return Seen(
        f"The record of {counted(lost, 'batch')} of {facts.summary.total:,} did not arrive from "
        "its worker.",
        "Their stall is charged to unknown; the other figures leave them out.",
    )
