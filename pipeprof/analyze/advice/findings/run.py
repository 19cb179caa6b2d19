"""What a run is too short, or too little seen, to say."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT


@case("too-few-batches")
def too_few(facts: Facts) -> Figures | None:
    """Too few batches were measured for a verdict.

    Seen by counting them. Cured by a longer run.
    """
    enough = facts.summary.measured >= LEAST_BATCHES_FOR_VERDICT
    return None if enough else {"least": LEAST_BATCHES_FOR_VERDICT}


@case("lost-records")
def lost(facts: Facts) -> Figures | None:
    """Some records of batches did not arrive from their workers.

    Seen by batches that were delivered and never told of, as when a worker was killed. Their stall
    is charged to *unknown*.
    """
    return {} if facts.recording.lost_records else None
