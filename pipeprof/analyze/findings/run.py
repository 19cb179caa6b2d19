"""What a run is too short, or too little seen, to say."""

from __future__ import annotations

from pipeprof.analyze.diagnose import FEWEST_BATCHES
from pipeprof.analyze.facts import Facts
from pipeprof.model import Finding
from pipeprof.units import counted


def too_few(facts: Facts) -> Finding | None:
    measured = facts.summary.measured
    if measured >= FEWEST_BATCHES:
        return None
    return Finding(
        "too-few-batches",
        "Too few batches to say",
        f"{counted(measured, 'batch')} of {facts.summary.total} measured after warm-up; a verdict "
        f"needs {FEWEST_BATCHES}.",
        "Run longer: more epochs, or more data.",
    )


def lost(facts: Facts) -> Finding | None:
    lost = facts.recording.lost_records
    if not lost:
        return None
    return Finding(
        "lost-records",
        "Some batches could not be seen being made",
        f"The record of {counted(lost, 'batch')} of {facts.summary.total:,} did not arrive from "
        "its worker.",
        "Their stall is charged to unknown; the other figures leave them out.",
    )
