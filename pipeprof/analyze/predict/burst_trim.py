"""A run without the burst of its storage. Throttled disks, cloud volumes and shaped links give more
for a while after they were idle, and a short run would take that for their rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeprof.analyze.predict.workload import Measured
from pipeprof.analyze.profile.intervals import standard_error

_MORE = 1.5
"""The rate of a burst, relative to the later rate, at the least."""
_SURE = 2.0
"""Standard errors by which they differ at least."""


def trim_burst(run: Measured, fewest: int) -> Measured:
    """``run`` without its beginning, if batches came much sooner then; the whole run, if fewer than
    ``fewest`` batches would be left."""
    together = 2 * max(1, run.setting.num_workers)  # what workers deliver in a row is not even
    rounds = len(run.columns) // together
    each_s = run.columns.cycle_s[: rounds * together].reshape(rounds, together).mean(axis=1)
    surest, cut = _SURE, 0
    for end in range(2, rounds // 2 + 1):
        first, later = each_s[:end], each_s[end:]
        more_s = float(later.mean() - first.mean())
        error_s = float(np.hypot(standard_error(first), standard_error(later)))
        if later.mean() > _MORE * first.mean() and more_s > surest * error_s:
            surest, cut = more_s / error_s if error_s else np.inf, end * together
    if not cut or len(run.columns) - cut < fewest:
        return run
    return replace(run, columns=run.columns.take(np.arange(len(run.columns)) >= cut))
