"""Findings about runs that are too short or recorded in part, or whose options were lost."""

from __future__ import annotations

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT
from pipeprof.model import LoaderConfig

_DEFAULTS = {"num_workers": 0, "pin_memory": False, "in_order": True}
_DEFAULTS_OF_WORKERS = {"prefetch_factor": 2, "persistent_workers": False}
"""Values of a DataLoader's options where none is given."""


@case("too-few-batches")
def too_few(facts: Facts) -> Figures | None:
    """Too few batches were measured for a verdict.

    Reported when fewer than 10 batches are left after warm-up. Where rank 0 reads for all ranks, it
    is reported on that rank only.

    Fix: run longer.
    """
    enough = facts.summary.measured >= LEAST_BATCHES_FOR_VERDICT
    return None if enough or facts.reads_elsewhere else {"least": LEAST_BATCHES_FOR_VERDICT}


@case("lost-records")
def lost(facts: Facts) -> Figures | None:
    """Some records of batches did not arrive from their workers.

    Reported when a batch was delivered but its record was not, for example because a worker was
    killed. The stall of these batches is charged to *unknown*.

    Fix: find out why the worker ended early.
    """
    return {} if facts.recording.lost_records else None


@case("options-lost")
def options_lost(facts: Facts) -> Figures | None:
    """A framework built another loader in the place of the script's, and lost options of it.

    Reported when the new loader has the default of an option, and the replaced one had another
    value: `num_workers`, `prefetch_factor`, `persistent_workers`, `pin_memory`, `in_order` or the
    start method.

    Fix: pass the options to what builds the loader, or build it after the framework's call.
    """
    origin = facts.recording.rebuilt_from
    lost = [] if origin is None else _lost(origin, facts.config)
    return {"options": ", ".join(lost), "count": len(lost)} if lost else None


def _lost(origin: LoaderConfig, now: LoaderConfig) -> list[str]:
    defaults = _DEFAULTS | (_DEFAULTS_OF_WORKERS if origin.num_workers and now.num_workers else {})
    lost = [
        f"{name}={getattr(origin, name)}"
        for name, default in defaults.items()
        if getattr(now, name) == default != getattr(origin, name)
    ]
    if origin.start_method and now.start_method not in (None, origin.start_method):
        lost.append(f'multiprocessing_context="{origin.start_method}"')
    return lost
