"""A change of settings as analysis proposes it: a code, figures, and what it would bring.

What it says in words, and the code to paste, `analyze.wording.advice` makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeprof.model import Cost

Figures = Mapping[str, object]
"""What analysis found, by name, beside the figures of the whole run; ``None`` or NaN is unknown."""


@dataclass(frozen=True)
class PredictedEffect:
    """What a change would bring; ``None`` is unknown. The fields are those of `Recommendation`."""

    predicted_samples_per_s: float | None = None
    interval: tuple[float, float] | None = None
    predicted_starved: float | None = None
    predicted_starved_interval: tuple[float, float] | None = None
    cost: Cost | None = None


@dataclass(frozen=True)
class Proposal:
    code: str
    """Of its words."""
    setting: str
    """What to change, e.g. ``num_workers``; several are joined by `` + ``."""
    figures: Figures
    outcome: PredictedEffect = PredictedEffect()
