"""Tell how much workers wait for a core, and how much they compute, from the sampled batches."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Floats


def core_wait_shares(columns: Columns) -> Floats:
    """Return the share of each batch's fetch in which its worker waited for a core; the mean share
    for batches whose resources were not sampled."""
    made_s = columns.made_s
    sampled = np.isfinite(columns.runqueue_s) & (made_s > 0)
    if not sampled.any():
        return np.zeros(len(columns))
    mean = columns.runqueue_s[sampled].sum() / made_s[sampled].sum()
    share = np.where(sampled, columns.runqueue_s / np.maximum(made_s, 1e-12), mean)
    return np.clip(share, 0.0, 1.0)


def runnable_core_wait(columns: Columns) -> float:
    """Return the share of the workers' runnable time in which they waited for a core; 0 unknown."""
    sampled = np.isfinite(columns.runqueue_s) & np.isfinite(columns.cpu_s)
    waited_s, ran_s = columns.runqueue_s[sampled].sum(), columns.cpu_s[sampled].sum()
    return float(waited_s / (waited_s + ran_s)) if waited_s + ran_s > 0 else 0.0


def computing_share(columns: Columns) -> float:
    """Return the share of the fetch time that is CPU time or waiting for a core; 1 unknown."""
    runnable_s = columns.cpu_s + columns.runqueue_s
    sampled = np.isfinite(runnable_s)
    made_s = columns.made_s[sampled].sum()
    return float(runnable_s[sampled].sum() / made_s) if made_s > 0 else 1.0
