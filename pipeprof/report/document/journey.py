"""A batch's journey as rows: which stages lie within others, and each one's share of the whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeprof.model import StageStats

WORKER_STAGES = ("fetch", "read", "decode", "transform", "collate", "serialise")
_ORDER = (
    *("fetch", "read", "decode", "transform", "collate", "transfer", "serialise", "pipe"),
    *("unpickle", "reorder", "pin", "ready", "wait", "step", "h2d", "pause"),
)
_APART = ("wait", "pause")
"""No part of a journey."""
_WITHIN = {
    **dict.fromkeys(("read", "decode", "transform"), "fetch"),
    **dict.fromkeys(("serialise", "pipe", "unpickle"), "transfer"),
    "h2d": "step",
}


@dataclass(frozen=True)
class JourneyStage:
    """One stage of the journey."""

    name: str
    stats: StageStats
    where: str
    """``worker``, ``main``, or ``both`` when it starts in one and ends in the other; empty for a
    stage of an unheard-of name."""
    nested: bool
    """Its time is also part of the stage above."""
    share: float | None
    """Of the journey. ``None`` for `Stage.WAIT`, which passes while other stages run, for
    `Stage.PAUSE`, and where no stage of a worker was timed."""


def journey(stages: Mapping[str, StageStats], num_workers: int) -> list[JourneyStage]:
    """The stages in the order in which a batch passes them; unheard-of names come last.

    The journey is the sum of the stages that follow one another: nested ones and the wait are
    not counted twice.
    """
    timed = [
        name
        for name in _ORDER
        if name in stages and name not in _APART and stages[name].source != "unknown"
    ]
    apart = [name for name in timed if _WITHIN.get(name) not in timed]
    fetch_seen = any(name in WORKER_STAGES for name in apart)
    whole_s = sum(stages[name].total_s for name in apart) if fetch_seen else 0.0
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
    """As in `journey`, and whether each one's time is also part of the stage above."""
    known = [name for name in _ORDER if name in names]
    others = [str(name) for name in names if name not in _ORDER]
    return [(name, _WITHIN.get(name) in names) for name in (*known, *others)]


def busy_s(stages: Mapping[str, StageStats]) -> float:
    """Seconds per batch that a worker spends in ``stages``."""
    rows = [row for row in journey(stages, 1) if row.name in WORKER_STAGES and not row.nested]
    return sum(row.stats.mean_s for row in rows)


def _where(stage: str, num_workers: int) -> str:
    if stage in ("transfer", "pipe"):
        return "both"
    return "worker" if stage in WORKER_STAGES and num_workers else "main"
