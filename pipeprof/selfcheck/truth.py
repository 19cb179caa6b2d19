"""What a pipeline's own clocks say: seconds of each stage, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.model import Stage
from pipeprof.selfcheck.clocked import ClockedBatch, Made, Mark

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

OFF_CORE = "off-core"
"""The resource that is run-queue and blocked together."""
AWAITED = "awaited in "
"""Before a stage's name: the part of the stall in which the awaited batch was in it."""
_NAMED = (Stage.READ, Stage.DECODE, Stage.TRANSFORM)


@dataclass
class Taken:
    """One iteration of the training loop, by its own clock."""

    asked_s: float
    delivered_s: float
    done_s: float
    made: Made
    begin: Mark
    end: Mark


def take(batches: Iterable[ClockedBatch], step: Callable[[Any], None]) -> list[Taken]:
    """Train for one epoch. Returns each iteration."""
    turns: list[Taken] = []
    asked_s = perf_counter()
    for batch in batches:
        delivered_s = perf_counter()
        # without the tensors: each holds a descriptor
        turns.append(Taken(asked_s, delivered_s, delivered_s, batch.made, batch.begin, batch.end))
        step(batch)
        # it takes time to free a batch of many tensors: within the step, as that is no waiting
        del batch
        turns[-1].done_s = asked_s = perf_counter()
    return turns


def true_seconds(turns: Sequence[Taken]) -> dict[str, Floats]:
    """Per stage and resource, an array with an entry per batch; NaN where it does not apply."""

    def column(name: str) -> Floats:
        return np.array([*map(attrgetter(name), turns)], dtype=np.float64)

    def spent(stage: Stage) -> Floats:
        spans = ([span for span in turn.made.spans if span.stage is stage] for turn in turns)
        seconds = [sum(span.end_s - span.start_s for span in each) for each in spans]
        return np.array(seconds, dtype=np.float64)

    asked, delivered = column("asked_s"), column("delivered_s")
    collated, fetched = column("made.collate_end_s"), column("made.fetch_end_s")
    pickled, unpickled = column("end.pickled_s"), column("end.unpickled_s")
    received = column("begin.unpickled_s")
    begun, cpu = column("made.fetch_start_s"), column("made.cpu_s")
    # what lies in the pipe while main trains is slack; what came while main waited for another
    # batch was on its way for as long as that took
    pipe = np.where(received < asked, np.nan, received - np.maximum(pickled, asked))
    all_before = np.maximum.accumulate(pickled)
    return {
        **{stage.value: spent(stage) for stage in _NAMED},
        "fetch": fetched - begun,
        "collate": collated - column("made.collate_start_s"),
        "transfer": unpickled - received + pipe + pickled - collated,
        "serialise": pickled - collated,
        "pipe": pipe,
        "unpickle": unpickled - received,
        "pin": column("end.pinned_s") - column("begin.pinned_s"),
        "reorder": all_before - pickled,
        "ready": np.maximum(0.0, asked - all_before),
        "wait": delivered - asked,
        "step": column("done_s") - delivered,
        "cpu": cpu,
        OFF_CORE: collated - begun - cpu,
        # what only computes is off its core only when it has none
        "run-queue": collated - begun - cpu,
        # what sleeps is woken late by a busy machine, but that is no longer sleep
        "blocked": column("made.sleeps_s"),
        **{AWAITED + name: charged for name, charged in charges(turns).items()},
    }


def charges(turns: Sequence[Taken]) -> dict[str, Floats]:
    """The stall of each batch, charged to what was being done for it in each moment: by a worker,
    by main, else on the way to or from a worker (*transfer*)."""
    every = [_charges(turn) for turn in turns]
    return {name: np.array([charged[name] for charged in every]) for name in every[0]}


def _charges(turn: Taken) -> dict[str, float]:
    def stalled(start_s: float, end_s: float) -> float:
        return max(0.0, min(end_s, turn.delivered_s) - max(start_s, turn.asked_s))

    made = turn.made
    named = {
        stage.value: sum(
            stalled(span.start_s, span.end_s) for span in made.spans if span.stage is stage
        )
        for stage in _NAMED
    }
    charged = {
        **named,
        "fetch": stalled(made.fetch_start_s, made.fetch_end_s) - sum(named.values()),
        "collate": stalled(made.collate_start_s, made.collate_end_s),
    }
    rest = turn.delivered_s - turn.asked_s - sum(charged.values())
    if math.isnan(turn.end.unpickled_s):  # no worker: it never left main
        return {**charged, "transfer": 0.0, "main": rest}
    in_main = stalled(turn.end.unpickled_s, turn.delivered_s)
    return {**charged, "transfer": rest - in_main, "main": in_main}


def read_in(turns: Sequence[Taken], what: str) -> int:
    """Sum over all reads; ``what``: ``bytes`` or ``requests``."""
    return sum(getattr(span, what) for turn in turns for span in turn.made.spans)
