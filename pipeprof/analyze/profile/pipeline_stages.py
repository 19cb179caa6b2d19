"""Find the stage that limits a loader which works in threads.

A stage is the limit if it is busy nearly all of the time of its threads: then no batch comes
sooner, whatever the others do. Stages that share threads are the limit together, and the longest of
them is named. Work in the thread of the training loop has only the time in which the loop waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeprof.analyze.thresholds import MOSTLY
from pipeprof.model import TRAINING_LOOP, PipelineStage

ALWAYS_BUSY = 0.85
"""Share of its threads' time from which on a stage is the limit. Handing items over takes the rest;
on a busy machine that was up to 10 % for items of 2 ms."""
ONE_INTERPRETER = 0.65, 1.25
"""Cores on which threads that compute in Python fill the interpreter. Handing it over takes the
rest of a core: with two to four threads 0.69 to 0.93 cores were computed on, the least while other
processes used the cores, too. More than one core is proof that threads leave the interpreter."""


@dataclass(frozen=True)
class BusyStage:
    """A stage, or the longest of several that share threads, and how busy those threads are."""

    stage: PipelineStage
    share: float
    """Share of the time, 0..1."""
    slots: int
    """Items that may be worked on at once."""
    known_by: Literal["busy", "unready", "waited", "interpreter"] = "busy"
    """Whether ``share`` is that of work, of an empty output queue, of the training loop's wait for
    this stage, or of one core on which all stages compute."""


def without_pauses(stages: Sequence[PipelineStage], pause_s: float) -> tuple[PipelineStage, ...]:
    """Return the stages without the time of pauses, in which their full queues make them rest."""
    return tuple(replace(stage, elapsed_s=max(0.0, stage.elapsed_s - pause_s)) for stage in stages)


def busiest_stage(stages: Sequence[PipelineStage], sums: Mapping[str, float]) -> BusyStage | None:
    """Return the stage that limits the loader; ``None`` where none is busy enough. ``sums`` are
    those of the run's `Summary`."""
    wall_s, stall_s = sums["wall_s"], sums["stall_s"]
    if not wall_s > 0:
        return None
    busy = list(busy_stages(stages, stall_s / wall_s))
    found = max(busy, key=lambda each: each.share, default=None)
    if found is not None and found.share >= ALWAYS_BUSY:
        return found
    rests = found is None or found.share < MOSTLY
    return (
        _waited_for(stages, stall_s) or _fills_interpreter(stages)
        or (_unready_source(stages) if rests else None)
    )  # fmt: skip


def busy_stages(stages: Sequence[PipelineStage], waiting: float) -> Iterator[BusyStage]:
    """Yield how busy each stage, and each group of stages with the same threads, is. ``waiting``
    is the share of the time in which the training loop waited."""
    pools: defaultdict[str, list[PipelineStage]] = defaultdict(list)
    for stage in stages:
        if stage.pool and stage.pool_size:
            pools[stage.pool].append(stage)
        share = stage.busy_share
        if share is not None and stage.concurrency and stage.pool != TRAINING_LOOP:
            yield BusyStage(stage, min(1.0, share), stage.concurrency)
    for name, members in pools.items():
        size, elapsed_s = members[0].pool_size or 1, members[0].elapsed_s
        elapsed_s *= waiting if name == TRAINING_LOOP else 1.0
        if elapsed_s > 0:
            total_s = sum(stage.busy_s or 0.0 for stage in members)
            longest = max(members, key=lambda stage: stage.busy_s or 0.0)
            yield BusyStage(longest, min(1.0, total_s / (size * elapsed_s)), size)


def computing_cores(stages: Sequence[PipelineStage]) -> float | None:
    """Return the cores on which all stages compute together; ``None`` where that is unknown."""
    timed = [stage for stage in stages if stage.busy_s is not None and stage.elapsed_s > 0]
    if any(stage.cpu_s is None for stage in timed):
        return None
    return sum((stage.cpu_s or 0.0) / stage.elapsed_s for stage in timed)


def _fills_interpreter(stages: Sequence[PipelineStage]) -> BusyStage | None:
    """Return the stage that computes most, where all of them fill Python's interpreter: they
    compute on about one core together, and yet wait. ``None`` where that is not so."""
    cores = computing_cores(stages)
    if cores is None or not ONE_INTERPRETER[0] <= cores < ONE_INTERPRETER[1]:
        return None
    longest = max(stages, key=lambda stage: stage.cpu_s or 0.0)
    if (longest.cpu_s or 0.0) > ALWAYS_BUSY * (longest.busy_s or 0.0):
        return None
    return BusyStage(longest, min(1.0, cores), longest.concurrency or 1, "interpreter")


def _unready_source(stages: Sequence[PipelineStage]) -> BusyStage | None:
    """Return the source that cannot be timed, and whose queue is nearly always empty."""
    for stage in stages:
        untimed = stage.busy_s is None and stage.waited_s is None
        share = 0.0 if stage.ready_share is None else 1 - stage.ready_share
        if untimed and share >= ALWAYS_BUSY:
            return BusyStage(stage, share, stage.concurrency or 1, "unready")
    return None


def _waited_for(stages: Sequence[PipelineStage], stall_s: float) -> BusyStage | None:
    """Return the stage for which the training loop mostly waited, by the library's own figures."""
    known = [stage for stage in stages if stage.waited_s is not None]
    longest = max(known, key=lambda stage: stage.waited_s or 0.0, default=None)
    if longest is None or not stall_s > 0 or (longest.waited_s or 0.0) < MOSTLY * stall_s:
        return None
    share = min(1.0, (longest.waited_s or 0.0) / stall_s)
    return BusyStage(longest, share, longest.concurrency or 1, "waited")
