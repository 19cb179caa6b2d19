"""Split the hand-over of a batch to main into its own work and waiting for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats, Rows
from pipeprof.analyze.profile.worker_activity import IDLE, SENDING, Activity
from pipeprof.analyze.thresholds import LEAST_UNDISTURBED

_UNDISTURBED_PERCENTILE = 10
"""Percentile of all hand-overs that is taken for an undisturbed one."""
_MOST_CPU_TIMES = 2.0
"""Multiple of main's CPU time for a hand-over, beyond which it waits for others. A handshake is
about as much work for the worker as for main, and each has to be woken for it."""


@dataclass(frozen=True)
class HandOver:
    """The work of handing each batch over. [batches], seconds; 0 unknown."""

    took_s: Floats
    """From received to unpickled in main."""
    own_s: Floats
    """The part of ``took_s`` that is main's CPU time, or what such a batch takes undisturbed."""
    piped_s: float
    """From sent to received, if undisturbed."""

    @classmethod
    def of(cls, columns: Columns, activity: Activity) -> HandOver:
        """Estimate the work from the hand-overs of idle workers; without enough of them from low
        percentiles of all."""
        rows = np.arange(len(columns))
        took_s = np.nan_to_num(columns.arrived_s - columns.received_s)
        cpu_s = np.fmin(took_s, np.nan_to_num(columns.unpickled_cpu_s))
        rest_s = took_s - cpu_s
        meanwhile = activity.between(rows, columns.received_s, columns.arrived_s)
        observed = took_s > 0
        idle = observed & (meanwhile[IDLE] + meanwhile[SENDING] >= took_s)
        enough = idle.sum() >= LEAST_UNDISTURBED
        least_s = least(rest_s[idle if enough else observed])
        computed = cpu_s[observed & (cpu_s > 0)]
        if not enough and len(computed):
            least_s = min(least_s, _MOST_CPU_TIMES * float(np.median(computed)))
        if not enough and idle.any():  # even one shows that it need not take longer
            least_s = min(least_s, float(rest_s[idle].min()))
        waited_s = columns.received_s - np.fmax(columns.asked_s, columns.sent_s)
        return cls(took_s, np.fmin(took_s, cpu_s + least_s), least(waited_s[waited_s > 0]))


def least(values: Floats) -> float:
    """Return what an undisturbed one of ``values`` takes; 0 where there are none."""
    return float(np.percentile(values, _UNDISTURBED_PERCENTILE)) if len(values) else 0.0


def in_order_received(columns: Columns) -> Rows:
    """Return the rows of the batches that main received, in the order in which it did."""
    order = np.argsort(columns.received_s, kind="stable")
    return order[: int(np.isfinite(columns.received_s).sum())]
