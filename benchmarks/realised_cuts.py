"""How much cheaper a cut makes its cause.

A cost is drawn, but a stage also takes the time to call it, to read clocks, or to wake up. So a
cost that is 25 % smaller often makes its stage less than 25 % cheaper: of a read from the page
cache, the system call itself remains. What a profile promises is about the stage, as it knows no
costs. So a promise is compared in proportion to how much cheaper its stage became.

A stage that computes is timed by the CPU time of its batches where workers compete for cores. That
is sampled. So where each process has a core of its own, the time that all batches took is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.blame_runs import CHEAPER, Cut, Turn
from benchmarks.random_loader_runs import steady_part
from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.model import Recording

QUARTER = 1 - CHEAPER


def realised(cause: str, cut: Cut, turns: Sequence[Turn]) -> float:
    """Return the share by which a cut made its cause cheaper, from 0 to a quarter. It is a quarter
    where the cause has no time of its own."""
    config, cores = turns[0].base.config, turns[0].base.environment.cores
    computes = all(cost.computes for cost in cut) and config.num_workers >= cores
    before = sum(_mean_s(turn.base, cause, computes) for turn in turns)
    after = sum(_mean_s(turn.cuts[cut], cause, computes) for turn in turns)
    if not before > 0 or not np.isfinite(after):
        return QUARTER
    # more than a quarter is the effect of the cut on a queue: of a disk, or of the cores
    return min(QUARTER, max(0.0, 1 - after / before))


def in_part(gain: float, realised: float) -> float:
    """Return what of a promised gain comes if its cause becomes only ``realised`` cheaper, and not
    a quarter: the time that it saves is in proportion."""
    saved = realised / QUARTER * gain / (1 + gain)
    return saved / (1 - saved)


def _mean_s(recording: Recording, cause: str, computes: bool) -> float:
    """Return the seconds per batch of a cause: on a core if it ``computes``."""
    own = _own_s(steady_part(recording).columns, cause, computes)
    return float(np.nanmean(own)) if np.isfinite(own).any() else float("nan")


def _own_s(columns: Columns, cause: str, computes: bool) -> Floats:
    if cause == "worker-cpu":
        return columns.cpu_s
    if cause == "transfer":
        return (columns.sent_s - columns.fetch_end_s) + (columns.arrived_s - columns.received_s)
    if cause == "pin":
        return columns.pinned_s - columns.arrived_s
    if cause == "sampler":
        return columns.sampler_s
    if cause == "fetch":
        whole, collate = ("cpu_s", "collate_cpu_s") if computes else ("made_s", "collate_s")
        return _column(columns, whole) - np.nan_to_num(_column(columns, collate))
    on_core = _column(columns, f"{cause}_cpu_s") if computes else np.array([np.nan])
    return on_core if np.isfinite(on_core).any() else _column(columns, f"{cause}_s")


def _column(columns: Columns, name: str) -> Floats:
    found: Floats = getattr(columns, name)
    return found
