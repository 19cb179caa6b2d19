"""Texts of a comparison: the change in throughput, and differences between the runs."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import Figures, fill


def comparison(code: str, figures: Figures, speed: object = None) -> str:
    """Return the sentence, or part of one, with this code. Templates may also name attributes of
    ``speed``, the `Speed` of the later run."""
    return fill(_TEXTS[code], figures, speed)


_RATES: Final = "{after.samples_per_s:count} instead of {before.samples_per_s:count}"
_RATIO: Final = "{ratio:.2f}× the samples/s"
_CHANGE: Final = f"{_RATIO} (95 %: {{interval[0]:.2f}}–{{interval[1]:.2f}}), {_RATES}"

_TEXTS: Final = {
    "unmeasured": f"Inconclusive: no throughput was measured ({_RATES} samples/s).",
    "too-few": f"Inconclusive: {_RATIO}, {_RATES}, but measured over too few batches.",
    "none": f"No difference that this data can show: {_CHANGE}.",
    "differs": f"{{shown:capital}}: {_CHANGE}«; starved {{starved.after:share}} of the time "
    "instead of {starved.before:share}»«; {stage} takes {stage_s:duration} {more_or_less} a "
    "{per}».",
    "accelerator": "another accelerator",
    "step": "the training step itself takes {before:duration} → {after:duration}",
    "machine": "another machine or kernel",
    "cores": "another share of the machine's cores",
    "busier": "other processes took another share of the cores: {before:percent} and "
    "{after:percent} of the time to build a batch was waiting for a core",
    "data": "other data",
    "cache": "the cache was {before} in one, {after} in the other",
    "sizes": "batches of other sizes, so times are given per sample",
    "threshold": "verdicts by thresholds of {before:share} and {after:share}",
}
