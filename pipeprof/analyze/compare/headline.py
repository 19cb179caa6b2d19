"""What became of the throughput, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeprof.model import Difference, Profile, Speed, Stage
from pipeprof.units import format_count, format_duration, format_share

_CAUSES: Final = (Stage.READ, Stage.DECODE, Stage.TRANSFORM, Stage.COLLATE, Stage.TRANSFER,
                  Stage.PIN, Stage.STEP)  # fmt: skip
"""Stages that take what they take, whatever waits for them; `Stage.FETCH` where its parts were not
seen."""


def headline(
    before: Profile, after: Profile, speed: Speed, starved: Difference,
    stages: Mapping[str, Difference], per: str,
) -> str:  # fmt: skip
    """``"Slower: 0.82× the samples/s (95 %: 0.79–0.86), 49,400 instead of 60,235; …"``."""
    rates = after.throughput.samples_per_s, before.throughput.samples_per_s
    of = f"{format_count(rates[0])} instead of {format_count(rates[1])}"
    if speed.ratio is None:
        return f"Too little to tell: no throughput was measured ({of} samples/s)."
    times = f"{speed.ratio:.2f}× the samples/s"
    if speed.interval is None:
        return f"Too little to tell: {times}, {of}, but measured over too few batches."
    times += f" (95 %: {speed.interval[0]:.2f}–{speed.interval[1]:.2f}), {of}"
    if speed.shown == "none":
        return f"No difference that this data can show: {times}."
    return f"{speed.shown.capitalize()}: {times}{_starved(starved)}{_cause(speed, stages, per)}."


def _starved(starved: Difference) -> str:
    if starved.shown not in ("more", "less"):
        return ""
    shares = format_share(starved.after or 0.0), format_share(starved.before or 0.0)
    return f"; starved {shares[0]} of the time instead of {shares[1]}"


def _cause(speed: Speed, stages: Mapping[str, Difference], per: str) -> str:
    """The stage that changed most in the way that the throughput did, where one is shown to."""
    wanted = "more" if speed.shown == "slower" else "less"
    parts = [str(stage) for stage in _CAUSES]
    if not any(name in stages for name in parts[:3]):
        parts.append(str(Stage.FETCH))
    found = {
        name: stages[name].change or 0.0
        for name in parts
        if name in stages and stages[name].shown == wanted
    }
    if not found:
        return ""
    most = max(found, key=lambda name: abs(found[name]))
    return f"; {most} takes {format_duration(abs(found[most]))} {wanted} a {per}"
