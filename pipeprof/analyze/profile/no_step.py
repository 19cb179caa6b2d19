"""A loop that does nothing with its batches: the loader is measured alone.

Nothing starves then: what there is to tell is the loader's rate, and what limits it.
"""

from __future__ import annotations

from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.thresholds import LEAST_BATCHES_FOR_VERDICT
from pipeprof.model import Stage

_STEP_S, _NINE_IN_TEN_S = 100e-6, 1e-3
"""A bare loop takes some 2 µs to ask again, and on a busy machine, where it frees a batch from
shared memory first, up to 60 µs. The smallest training step, of one linear layer on a CPU, takes
more than 100 µs; a few longer ones may be the system's, but not one in ten."""


def has_step(summary: Summary) -> bool:
    """Whether the loop trains: it does not where half of its steps take 100 µs at most and nine in
    ten 1 ms, no device was busy, and the loop mostly waits. Of too few batches it is assumed."""
    sums, steps = summary.sums, summary.stages[str(Stage.STEP)]
    if summary.measured < LEAST_BATCHES_FOR_VERDICT or sums["device_busy_s"] > 0:
        return True
    middle_s, long_s = steps.quantiles(0.5, 0.9)
    waits = sums["stall_s"] > 0.5 * sums["wall_s"]
    return not (middle_s <= _STEP_S and long_s <= _NINE_IN_TEN_S and waits)
