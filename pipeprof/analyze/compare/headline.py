"""What became of the throughput: the figures of a comparison's headline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeprof.analyze.wording.comparison import comparison
from pipeprof.model import Difference, Profile, Speed, Stage

_CAUSES: Final = (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.COLLATE, Stage.TRANSFER,
                  Stage.PIN, Stage.STEP)  # fmt: skip
"""Stages that take what they take, whatever waits for them; `Stage.FETCH` where its parts were not
seen."""


def headline(
    before: Profile, after: Profile, speed: Speed, starved: Difference,
    stages: Mapping[str, Difference], per: str,
) -> str:  # fmt: skip
    """``"Slower: 0.82× the samples/s (95 %: 0.79–0.86), 49,400 instead of 60,235; …"``."""
    figures: dict[str, object] = {"after": after.throughput, "before": before.throughput}
    if speed.ratio is None or speed.interval is None:
        return comparison("unmeasured" if speed.ratio is None else "too-few", figures, speed)
    if speed.shown == "none":
        return comparison("none", figures, speed)
    wanted = "more" if speed.shown == "slower" else "less"
    stage, stage_s = _cause(stages, wanted)
    figures |= {"stage": stage, "stage_s": stage_s, "more_or_less": wanted, "per": per}
    if starved.shown in ("more", "less"):
        figures["starved"] = starved
    return comparison("differs", figures, speed)


def _cause(stages: Mapping[str, Difference], wanted: str) -> tuple[str | None, float]:
    """The stage that changed most in the direction of the throughput, and by how many seconds."""
    parts = [str(stage) for stage in _CAUSES]
    if not any(name in stages for name in parts[:3]):
        parts.append(str(Stage.FETCH))
    found = {
        name: abs(stages[name].change or 0.0)
        for name in parts
        if name in stages and stages[name].shown == wanted
    }
    most = max(found, key=found.__getitem__, default=None)
    return most, found.get(most or "", 0.0)
