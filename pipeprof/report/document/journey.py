"""Order the stages of a batch, nest them, and compute each one's share of the whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeprof.model import StageStats

WORKER_STAGES = ("fetch", "read", "decode", "transform", "collate", "serialise")
_ORDER = (
    *("fetch", "read", "decode", "transform", "collate", "transfer", "serialise", "pipe"),
    *("unpickle", "reorder", "pin", "ready", "wait", "step", "h2d", "pause"),
)
_OUTSIDE = ("wait", "pause")
"""Stages that are not part of a journey."""
_PARENT = {
    **dict.fromkeys(("read", "decode", "transform"), "fetch"),
    **dict.fromkeys(("serialise", "pipe", "unpickle"), "transfer"),
    "h2d": "step",
}


@dataclass(frozen=True)
class JourneyStage:
    """One stage of a batch's journey."""

    name: str
    stats: StageStats
    where: str
    """``worker``, ``main``, or ``both`` if it starts in one and ends in the other. Empty for a
    stage of an unknown name."""
    nested: bool
    """Whether its time is also part of the stage above."""
    share: float | None
    """Share of the journey, 0..1. ``None`` for `Stage.WAIT`, which overlaps other stages, for
    `Stage.PAUSE`, and where no worker stage was timed."""


def journey(stages: Mapping[str, StageStats], num_workers: int) -> list[JourneyStage]:
    """Return the stages in the order in which a batch passes them; unknown names come last.

    The journey's time is the sum of its top-level stages: neither nested stages nor the wait are
    counted twice.
    """
    timed = [
        name
        for name in _ORDER
        if name in stages and name not in _OUTSIDE and stages[name].source != "unknown"
    ]
    top_level = [name for name in timed if _PARENT.get(name) not in timed]
    has_worker_stage = any(name in WORKER_STAGES for name in top_level)
    whole_s = sum(stages[name].total_s for name in top_level) if has_worker_stage else 0.0
    return [
        JourneyStage(
            name,
            stages[name],
            where=_where(name, num_workers) if name in _ORDER else "",
            nested=nested,
            share=stages[name].total_s / whole_s if name in timed and whole_s > 0 else None,
        )
        for name, nested in in_order(stages)
    ]


def in_order(names: Collection[str]) -> list[tuple[str, bool]]:
    """Return ``names`` in the order of `journey`, each with whether it is nested."""
    known = [name for name in _ORDER if name in names]
    others = [str(name) for name in names if name not in _ORDER]
    return [(name, _PARENT.get(name) in names) for name in (*known, *others)]


def busy_s(stages: Mapping[str, StageStats]) -> float:
    """Return the mean seconds per batch that a worker spends in ``stages``."""
    rows = [row for row in journey(stages, 1) if row.name in WORKER_STAGES and not row.nested]
    return sum(row.stats.mean_s for row in rows)


def _where(stage: str, num_workers: int) -> str:
    if stage in ("transfer", "pipe"):
        return "both"
    return "worker" if stage in WORKER_STAGES and num_workers else "main"
