"""Findings about runs that are too short, or recorded in part."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT


@case("too-few-batches")
def too_few(facts: Facts) -> Figures | None:
    """Too few batches were measured for a verdict.

    Reported when fewer than 10 batches are left after warm-up.

    Fix: run longer.
    """
    enough = facts.summary.measured >= LEAST_BATCHES_FOR_VERDICT
    return None if enough else {"least": LEAST_BATCHES_FOR_VERDICT}


@case("lost-records")
def lost(facts: Facts) -> Figures | None:
    """Some records of batches did not arrive from their workers.

    Reported when a batch was delivered but its record was not, for example because a worker was
    killed. The stall of these batches is charged to *unknown*.

    Fix: find out why the worker ended early.
    """
    return {} if facts.recording.lost_records else None
