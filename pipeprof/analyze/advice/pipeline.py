"""Compute what more concurrency of a pipeline's busiest stage gives, and propose it.

The rate rises until something else is the limit: the next busiest stage, the training step, the
cores, or Python's interpreter. Threads compute in Python one at a time. While all of them together
compute on less than one core, nothing beyond one core is promised: this run does not show that they
could use more. Threads that do compute on several cores may use all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import PredictedEffect, Proposal
from pipeprof.analyze.profile.pipeline_stages import (
    ONE_INTERPRETER,
    BusyStage,
    busy_stages,
    computing_cores,
)
from pipeprof.analyze.thresholds import LEAST_GAIN, MINOR_SHARE
from pipeprof.model import TRAINING_LOOP, PipelineStage

_MOST_TIMES = 4.0
"""Largest promised factor. One run says little about what comes after more than that."""
_OPTIONS = {
    "ParallelMapper": "num_workers", "Mapper": "num_workers", "pipe": "concurrency",
}  # fmt: skip
"""A stage's kind → the option that sets its concurrency."""


@dataclass(frozen=True)
class MoreThreads:
    """What more concurrency of the busiest stage gives."""

    wanted: int
    times: float
    """Ratio of the throughput with it to the present one."""
    limit: str
    """What limits it then: ``stage``, ``step``, ``cores``, ``interpreter`` or ``unknown``."""
    next_stage: str | None
    """Name of the next busiest stage, if that is the limit."""


def more_threads(facts: Facts) -> MoreThreads | None:
    """Return what more concurrency gives; ``None`` where no stage is the limit, or where it has no
    setting for that."""
    bound = facts.summary.charges.busiest
    if bound is None or bound.known_by != "busy" or not bound.share > 0:
        return None
    limits = dict(_limits(facts, bound))
    limit = min(limits, key=lambda name: limits[name])
    wanted = max(bound.slots, ceil(bound.slots * bound.share * limits[limit] - 0.05))
    times = min(limits[limit], wanted / (bound.slots * bound.share))
    stage = _next(facts, bound)
    return MoreThreads(
        wanted, max(1.0, times), limit, stage.stage.name if stage and limit == "stage" else None
    )


def _limits(facts: Facts, bound: BusyStage) -> Iterator[tuple[str, float]]:
    """Yield by what factor each part lets the rate rise."""
    yield "unknown", _MOST_TIMES
    following = _next(facts, bound)
    if following is not None and following.share > 0:
        yield "stage", 1 / following.share
    if facts.diagnosis.has_step and facts.step_s > 0:
        yield "step", facts.cycle_s / facts.step_s
    computing, wanted = _cores(facts)
    if wanted > 0:
        yield "cores", facts.cores / facts.environment.ranks / max(facts.main_cores, wanted)
    if wanted > 0 and computing < ONE_INTERPRETER[1]:
        yield "interpreter", max(1.0, ONE_INTERPRETER[0] / wanted)


def _cores(facts: Facts) -> tuple[float, float]:
    """Return the cores on which the stages and the library's own threads compute together, and
    those on which they would if no other process had the cores.

    On a busy machine, threads that compute wait for a core while they have the interpreter. Threads
    that mostly wait for something else are woken late, which is no computing.
    """
    stages, threads = facts.recording.pipeline, facts.recording.pipeline_threads
    timed = computing_cores(stages) or 0.0
    if threads is None or not threads.elapsed_s > 0:
        computing = max(facts.main_cores, timed)
        return computing, computing
    computing = max(threads.cpu_s / threads.elapsed_s, timed)
    waiting = (threads.runqueue_s or 0.0) / threads.elapsed_s
    return computing, computing + (waiting if any(map(_computes, stages)) else 0.0)


def _computes(stage: PipelineStage) -> bool:
    """Return whether computing is a considerable part of a stage that takes considerable time."""
    if not stage.busy_s or (stage.busy_share or 0.0) < MINOR_SHARE:
        return False
    return stage.cpu_s is None or stage.cpu_s >= MINOR_SHARE * stage.busy_s


def _next(facts: Facts, bound: BusyStage) -> BusyStage | None:
    """Return the busiest part that is not made faster together with ``bound``."""
    sums = facts.summary.sums
    waiting = sums["stall_s"] / sums["wall_s"] if sums["wall_s"] else 0.0
    pool = bound.stage.pool
    others = (
        each for each in busy_stages(facts.recording.pipeline, waiting)
        if each.stage.name != bound.stage.name and (not pool or each.stage.pool != pool)
    )  # fmt: skip
    return max(others, key=lambda each: each.share, default=None)


def proposals(facts: Facts) -> tuple[Proposal, ...]:
    """Return what to do about the stage that limits the pipeline; none where there is no such
    stage."""
    bound = facts.summary.charges.busiest
    if bound is None:
        return ()
    stage, more, code = bound.stage, more_threads(facts), _code(bound)
    figures = stage_figures(facts, bound)
    if bound.known_by == "interpreter":
        return (Proposal("pipeline-interpreter", stage.name, figures),)
    if more is None or code is None:
        return (Proposal(_without_setting(stage), stage.name, figures),)
    figures |= {
        "wanted": more.wanted, "threads": _all_threads(facts, bound, more),
        "next_stage": more.next_stage,
        "by_step": more.limit == "step", "by_cores": more.limit == "cores",
        "by_unknown": more.limit == "unknown",
        "by_interpreter": more.limit == "interpreter",
    }  # fmt: skip
    if more.times < LEAST_GAIN:
        by = more.limit if more.limit in ("interpreter", "cores") else "others"
        return (Proposal(f"pipeline-{by}", stage.name, figures),)
    setting = f"{_OPTIONS.get(stage.kind, 'num_threads')} of {stage.name}"
    return (Proposal(code, setting, figures, PredictedEffect(facts.rate * more.times)),)


def stage_figures(facts: Facts, bound: BusyStage) -> dict[str, object]:
    """Return the figures of the stage that limits the pipeline."""
    stage, busy_s, cpu_s = bound.stage, bound.stage.busy_s, bound.stage.cpu_s
    return {
        "stage": stage.name, "kind": stage.kind, "library": stage.library,
        "busy": bound.share, "slots": bound.slots, "items": stage.items,
        "timed": bound.known_by == "busy", "waited": bound.known_by == "waited",
        "unready": bound.known_by == "unready",
        "in_turns": bound.known_by == "interpreter",
        "each_s": busy_s / stage.items if stage.items and busy_s is not None else None,
        "computing": min(1.0, cpu_s / busy_s) if cpu_s is not None and busy_s else None,
        "cores_used": _cores(facts)[0],
    }  # fmt: skip


def _without_setting(stage: PipelineStage) -> str:
    """Return the code of the proposal for a stage that has no setting for its concurrency."""
    if stage.library == "ray.data":
        return "ray-production" if stage.name == "production_wait" else "ray-iteration"
    return "pipeline-one-thread"


def _code(bound: BusyStage) -> str | None:
    """Return the code of the proposal that raises the concurrency of a stage."""
    stage = bound.stage
    if stage.library == "torchdata.nodes" and stage.kind in _OPTIONS:
        return "more-of-mapper" if stage.kind == "ParallelMapper" else "parallel-mapper"
    if stage.library == "grain" and stage.pool != TRAINING_LOOP and bound.slots > 1:
        return "more-reading-threads"
    if stage.library == "spdl" and stage.kind == "pipe":
        return "more-of-pipe"
    return None


def _all_threads(facts: Facts, bound: BusyStage, more: MoreThreads) -> int | None:
    """Return the size that a shared pool needs for the new concurrency."""
    size = bound.stage.pool_size
    if not size:
        return None
    busy = sum(
        (stage.busy_s or 0.0) / stage.elapsed_s
        for stage in facts.recording.pipeline
        if stage.pool == bound.stage.pool and stage.elapsed_s > 0
    )
    return max(size, more.wanted, ceil(busy * more.times))
