"""Recognise a loop that does nothing with its batches, so that the loader is measured alone.

Nothing is starved then. The result is the loader's rate, and what limits it.
"""

from __future__ import annotations

from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT, MOSTLY
from pipeprof.model import Stage

_MEDIAN_STEP_S, _LONG_STEP_S = 100e-6, 1e-3
"""Longest median and 90th percentile of the steps of a bare loop.

A bare loop takes some 2 µs to ask again. On a busy machine, where it frees a batch from shared
memory first, it takes up to 60 µs. The smallest training step, of one linear layer on a CPU, takes
more than 100 µs. The system may delay a few steps, but not one in ten.
"""
_MOST_DELAYED = 0.05
"""Largest share of the time that the few longer steps of a bare loop take. A loop that gathers many
batches for each step of the optimizer has few long steps, too, and they take more."""


def has_step(summary: Summary) -> bool:
    """Whether the loop trains. It does not if its steps are as short as those of a bare loop, no
    device was busy, and the loop mostly waits. With too few batches it is assumed to train."""
    sums, steps = summary.sums, summary.stages[str(Stage.STEP)]
    if summary.measured < LEAST_BATCHES_FOR_VERDICT or sums["device_busy_s"] > 0:
        return True
    median_s, long_s = steps.quantiles(0.5, 0.9)
    waits = sums["stall_s"] > MOSTLY * sums["wall_s"]
    short = median_s <= _MEDIAN_STEP_S and long_s <= _LONG_STEP_S
    return not (short and waits) or steps.total_above(_LONG_STEP_S) > _MOST_DELAYED * sums["wall_s"]
