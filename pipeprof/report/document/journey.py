"""A batch's journey as rows: which stages lie within others, and each one's share of the whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeprof.model import Stage, StageStats

_ORDER = (
    Stage.FETCH,
    Stage.READ,
    Stage.DECODE,
    Stage.TRANSFORM,
    Stage.COLLATE,
    Stage.TRANSFER,
    Stage.SERIALISE,
    Stage.PIPE,
    Stage.UNPICKLE,
    Stage.REORDER,
    Stage.PIN,
    Stage.READY,
    Stage.WAIT,
    Stage.STEP,
    Stage.H2D,
    Stage.PAUSE,
)
_APART = (Stage.WAIT, Stage.PAUSE)
"""No part of a journey."""
_WITHIN = {
    Stage.READ: Stage.FETCH,
    Stage.DECODE: Stage.FETCH,
    Stage.TRANSFORM: Stage.FETCH,
    Stage.SERIALISE: Stage.TRANSFER,
    Stage.PIPE: Stage.TRANSFER,
    Stage.UNPICKLE: Stage.TRANSFER,
    Stage.H2D: Stage.STEP,
}
WORKER_STAGES = (
    Stage.FETCH,
    Stage.READ,
    Stage.DECODE,
    Stage.TRANSFORM,
    Stage.COLLATE,
    Stage.SERIALISE,
)


@dataclass(frozen=True)
class JourneyStage:
    """One stage of the journey."""

    name: str
    stats: StageStats
    where: str
    """``worker``, ``main``, or ``both`` when it starts in one and ends in the other."""
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
    known = [stage for stage in _ORDER if stage in stages]
    timed = [s for s in known if s not in _APART and stages[s].source != "unknown"]
    apart = [stage for stage in timed if _WITHIN.get(stage) not in timed]
    fetch_seen = any(stage in WORKER_STAGES for stage in apart)
    whole_s = sum(stages[stage].total_s for stage in apart) if fetch_seen else 0.0
    rows = []
    for stage in known:
        stats = stages[stage]
        rows.append(
            JourneyStage(
                stage.value,
                stats,
                where=_where(stage, num_workers),
                nested=_WITHIN.get(stage) in stages,
                share=stats.total_s / whole_s if stage in timed and whole_s > 0 else None,
            )
        )
    others = [name for name in stages if name not in _ORDER]
    return rows + [
        JourneyStage(name, stages[name], "", nested=False, share=None) for name in others
    ]


def in_order(names: Collection[str]) -> list[tuple[str, bool]]:
    """As in `journey`, and whether each one's time is also part of the stage above."""
    known = [stage for stage in _ORDER if stage in names]
    others = [name for name in names if name not in _ORDER]
    return [(stage.value, _WITHIN.get(stage) in names) for stage in known] + [
        (name, False) for name in others
    ]


def busy_s(stages: Mapping[str, StageStats]) -> float:
    """Seconds per batch that a worker spends in ``stages``."""
    rows = [row for row in journey(stages, 1) if row.name in WORKER_STAGES and not row.nested]
    return sum(row.stats.mean_s for row in rows)


def _where(stage: Stage, num_workers: int) -> str:
    if stage in (Stage.TRANSFER, Stage.PIPE):
        return "both"
    return "worker" if stage in WORKER_STAGES and num_workers else "main"
