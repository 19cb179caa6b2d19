"""Compute the headline of a comparison: how the throughput changed, and in which stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeprof.analyze.wording.comparison import comparison
from pipeprof.model import Difference, Profile, Speed, Stage

_CAUSES: Final = (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.COLLATE, Stage.TRANSFER,
                  Stage.PIN, Stage.STEP)  # fmt: skip
"""Stages whose time does not depend on others; plus `Stage.FETCH` where its parts are unknown."""


def headline(
    before: Profile, after: Profile, speed: Speed, starved: Difference,
    stages: Mapping[str, Difference], per: str,
) -> str:  # fmt: skip
    """Return e.g. ``"Slower: 0.82× the samples/s (95 %: 0.79–0.86), 49,400 instead of 60,235"``."""
    figures: dict[str, object] = {"after": after.throughput, "before": before.throughput}
    if speed.ratio is None or speed.interval is None:
        return comparison("unmeasured" if speed.ratio is None else "too-few", figures, speed)
    if speed.shown == "none":
        return comparison("none", figures, speed)
    direction = "more" if speed.shown == "slower" else "less"
    stage, stage_s = _cause(stages, direction)
    figures |= {"stage": stage, "stage_s": stage_s, "more_or_less": direction, "per": per}
    if starved.shown in ("more", "less"):
        figures["starved"] = starved
    return comparison("differs", figures, speed)


def _cause(stages: Mapping[str, Difference], direction: str) -> tuple[str | None, float]:
    """Return the stage that changed most in this direction, and by how many seconds."""
    names = [str(stage) for stage in _CAUSES]
    if not any(name in stages for name in names[:3]):
        names.append(str(Stage.FETCH))
    changes_s = {
        name: abs(stages[name].change or 0.0)
        for name in names
        if name in stages and stages[name].shown == direction
    }
    largest = max(changes_s, key=changes_s.__getitem__, default=None)
    return largest, changes_s.get(largest or "", 0.0)
