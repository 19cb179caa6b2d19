"""Remove the burst of a storage from the beginning of a run.

Throttled disks, cloud volumes and shaped links are faster for a while after they were idle. A short
run would take that for their rate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeprof.analyze.predict.workload import Measured
from pipeprof.analyze.profile.intervals import standard_error

_BURST_RATIO = 1.5
"""Least rate of a burst, relative to the later rate."""
_SIGNIFICANT = 2.0
"""Least standard errors by which the two rates differ."""


def trim_burst(run: Measured, fewest: int) -> Measured:
    """Return ``run`` without its beginning, if batches came much sooner then. The whole run is
    returned if fewer than ``fewest`` batches would be left."""
    group = 2 * max(1, run.setting.num_workers)  # a round of all workers is uneven within
    rounds = len(run.columns) // group
    each_s = run.columns.cycle_s[: rounds * group].reshape(rounds, group).mean(axis=1)
    most_errors, cut = _SIGNIFICANT, 0
    for end in range(2, rounds // 2 + 1):
        first, later = each_s[:end], each_s[end:]
        more_s = float(later.mean() - first.mean())
        error_s = float(np.hypot(standard_error(first), standard_error(later)))
        if later.mean() > _BURST_RATIO * first.mean() and more_s > most_errors * error_s:
            most_errors, cut = more_s / error_s if error_s else np.inf, end * group
    if not cut or len(run.columns) - cut < fewest:
        return run
    return replace(run, columns=run.columns.take(np.arange(len(run.columns)) >= cut))
