"""Say what a prediction leaves open, and which short run would decide it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill


def explain_prediction(figures: Figures) -> Figures:
    """Return ``figures`` with sentences in the place of ``left_open`` and ``settle``, if any."""
    left_open, run = figures.get("left_open"), figures.get("settle")
    return {
        **figures,
        "left_open": open_question(left_open) if isinstance(left_open, str) else None,
        "settle": deciding_run(run) if isinstance(run, Mapping) else None,
    }


def open_question(code: str) -> str:
    """Return the sentence for `Prediction.open_question`; empty for no code."""
    return _OPEN_QUESTIONS[code] if code else ""


def deciding_run(figures: Figures) -> str:
    """Return the sentence for `Prediction.deciding_run`; empty for no figures."""
    return fill(_DECIDING_RUN, figures)


_OPEN_QUESTIONS: Final = {
    "hand-over": "the training process does little but receive batches, and no run has shown what "
    "that takes with so many workers",
    "shared-wait": "what workers wait for may have no room for more of them",
    "native-threads": "one run does not show whether native threads compute, or use cores to wait: "
    "a worker has one thread for torch's operations",
    "single-run": "one run leaves open how much cores slow each other down, or what handing over "
    "takes",
}
_DECIDING_RUN: Final = (
    "«a short run with num_workers={num_workers}»« and prefetch_factor={prefetch_factor}»"
    "«longer runs, since those with the same setting differ by {noise:percent}»"
)
