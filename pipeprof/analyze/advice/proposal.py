"""Define a proposed change of settings: a code, figures, and its predicted outcome.

`analyze.wording.advice` turns it into words and code to paste.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeprof.model import Cost

Figures = Mapping[str, object]
"""Values by name that a text needs and `Facts` does not have; ``None`` or NaN is unknown."""


@dataclass(frozen=True)
class PredictedEffect:
    """The predicted effect of a change; ``None`` is unknown. `Recommendation` has these fields."""

    predicted_samples_per_s: float | None = None
    interval: tuple[float, float] | None = None
    predicted_starved: float | None = None
    predicted_starved_interval: tuple[float, float] | None = None
    predicted_epoch_saving: float | None = None
    cost: Cost | None = None


@dataclass(frozen=True)
class Proposal:
    """One change of a setting, without words."""

    code: str
    """The key of its templates in `analyze.wording.advice`."""
    setting: str
    """What to change, e.g. ``num_workers``; several are joined by `` + ``."""
    figures: Figures
    outcome: PredictedEffect = PredictedEffect()
