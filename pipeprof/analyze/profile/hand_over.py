"""How much of handing a batch over to main is work of its own, and not waiting for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.worker_activity import IDLE, SENDING, Activity

_ENOUGH = 10
"""Hand-overs by idle workers that suffice to estimate what one takes at the least."""
_LEAST = 10
"""Percentile of all hand-overs that is taken for an undisturbed one."""
_TIMES_CPU = 2.0
"""Multiple of main's CPU time for a hand-over, beyond which it waits for others. A handshake is
about as much work for the worker as for main, and each has to be woken for it."""


@dataclass(frozen=True)
class HandOver:
    """The work of handing each batch over. [batches], seconds; unknown is 0."""

    took_s: Floats
    """From received to unpickled in main."""
    own_s: Floats
    """Of that, main's CPU time and what such a batch takes undisturbed."""
    piped_s: float
    """From sent to received, undisturbed."""

    @classmethod
    def of(cls, columns: Columns, activity: Activity) -> HandOver:
        rows = np.arange(len(columns))
        took_s = np.nan_to_num(columns.arrived_s - columns.received_s)
        cpu_s = np.fmin(took_s, np.nan_to_num(columns.unpickled_cpu_s))
        rest_s = took_s - cpu_s
        beside = activity.between(rows, columns.received_s, columns.arrived_s)
        passed = took_s > 0
        alone = passed & (beside[IDLE] + beside[SENDING] >= took_s)
        least_s = least(rest_s[alone if alone.sum() >= _ENOUGH else passed])
        computed = cpu_s[passed & (cpu_s > 0)]
        if alone.sum() < _ENOUGH and len(computed):
            least_s = min(least_s, _TIMES_CPU * float(np.median(computed)))
        waited_s = columns.received_s - np.fmax(columns.asked_s, columns.sent_s)
        return cls(took_s, np.fmin(took_s, cpu_s + least_s), least(waited_s[waited_s > 0]))


def least(values: Floats) -> float:
    """What an undisturbed one of ``values`` takes; 0 where there are none."""
    return float(np.percentile(values, _LEAST)) if len(values) else 0.0
