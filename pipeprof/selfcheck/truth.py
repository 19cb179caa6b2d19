"""Compute the true seconds of each stage, batch by batch, from a pipeline's own clock readings."""

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
from pipeprof.selfcheck.clocked import ClockedBatch, ClockedFetch, Mark

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

OFF_CORE = "off-core"
"""The resource that is the sum of run-queue and blocked."""
AWAITED = "awaited in "
"""Prefix of a stage's name: the part of the stall in which the awaited batch was in that stage."""
_NAMED = (Stage.READ, Stage.DECODE, Stage.TRANSFORM)


@dataclass
class Iteration:
    """One iteration of the training loop, by its own clock."""

    asked_s: float
    delivered_s: float
    done_s: float
    fetch: ClockedFetch
    begin: Mark
    end: Mark


def train_epoch(batches: Iterable[ClockedBatch], step: Callable[[Any], None]) -> list[Iteration]:
    """Train for one epoch, and return the readings of each iteration."""
    iterations: list[Iteration] = []
    asked_s = perf_counter()
    for batch in batches:
        delivered_s = perf_counter()
        # without the tensors, because each holds a file descriptor
        iterations.append(
            Iteration(asked_s, delivered_s, delivered_s, batch.fetch, batch.begin, batch.end)
        )
        step(batch)
        # freeing many tensors takes time; it belongs to the step, not to the wait
        del batch
        iterations[-1].done_s = asked_s = perf_counter()
    return iterations


def true_seconds(iterations: Sequence[Iteration]) -> dict[str, Floats]:
    """Return stage or resource → seconds per batch, shape [batches]; NaN where not applicable."""

    def column(name: str) -> Floats:
        return np.array([*map(attrgetter(name), iterations)], dtype=np.float64)

    def seconds_in(stage: Stage) -> Floats:
        spans = ([span for span in each.fetch.spans if span.stage is stage] for each in iterations)
        seconds = [sum(span.end_s - span.start_s for span in part) for part in spans]
        return np.array(seconds, dtype=np.float64)

    asked, delivered = column("asked_s"), column("delivered_s")
    collated, fetched = column("fetch.collate_end_s"), column("fetch.fetch_end_s")
    pickled, unpickled = column("end.pickled_s"), column("end.unpickled_s")
    received = column("begin.unpickled_s")
    begun, cpu = column("fetch.fetch_start_s"), column("fetch.cpu_s")
    # a batch in the pipe while main trains is slack; one that arrived while main waited for
    # another batch was in the pipe for that long
    pipe = np.where(received < asked, np.nan, received - np.maximum(pickled, asked))
    all_before = np.maximum.accumulate(pickled)
    return {
        **{stage.value: seconds_in(stage) for stage in _NAMED},
        "fetch": fetched - begun,
        "collate": collated - column("fetch.collate_start_s"),
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
        # a thread that only computes is off a core only when it has none
        "run-queue": collated - begun - cpu,
        # a busy machine wakes a thread late; the delay is no longer sleep
        "blocked": column("fetch.sleeps_s"),
        **{AWAITED + name: charged for name, charged in charges(iterations).items()},
    }


def charges(iterations: Sequence[Iteration]) -> dict[str, Floats]:
    """Charge the stall of each batch to the work on it at each moment: by a worker, by the main
    process, or else in transfer between them."""
    rows = [_charges(iteration) for iteration in iterations]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _charges(iteration: Iteration) -> dict[str, float]:
    def stalled(start_s: float, end_s: float) -> float:
        return max(0.0, min(end_s, iteration.delivered_s) - max(start_s, iteration.asked_s))

    fetch = iteration.fetch
    named = {
        stage.value: sum(
            stalled(span.start_s, span.end_s) for span in fetch.spans if span.stage is stage
        )
        for stage in _NAMED
    }
    charged = {
        **named,
        "fetch": stalled(fetch.fetch_start_s, fetch.fetch_end_s) - sum(named.values()),
        "collate": stalled(fetch.collate_start_s, fetch.collate_end_s),
    }
    remaining = iteration.delivered_s - iteration.asked_s - sum(charged.values())
    if math.isnan(iteration.end.unpickled_s):  # without a worker the batch never left main
        return {**charged, "transfer": 0.0, "main": remaining}
    in_main = stalled(iteration.end.unpickled_s, iteration.delivered_s)
    return {**charged, "transfer": remaining - in_main, "main": in_main}


def read_in(iterations: Sequence[Iteration], quantity: str) -> int:
    """Sum ``quantity``, which is ``bytes`` or ``requests``, over all reads."""
    return sum(getattr(span, quantity) for each in iterations for span in each.fetch.spans)
