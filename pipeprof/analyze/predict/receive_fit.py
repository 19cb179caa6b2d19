"""What main takes to receive a batch, fitted so that simulations repeat whole runs on average.
Medians of single moments do not achieve that.

While workers compute, main is woken late, and so are they when it asks them for the files of a
batch's shared memory. And with some loaders two workers hand over batches sooner than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.workload import Demand, Machine, Measured
from pipeprof.analyze.profile.batch_table import Columns, Floats

_FITS = 3
_HALVINGS = 6
_LONGEST_S = 0.1
"""Wait for a worker's interpreter where it was never observed to be released."""


def receiving(
    demands: tuple[Demand, ...], machine: Machine, runs: Sequence[Measured]
) -> tuple[Demand, ...]:
    """``demands``, changed so that main takes as long to receive a batch as in ``runs``, which are
    of one setting. Where it took less than ``demands`` say, waits for workers' interpreters are
    shortened first, as they are the least certain; then main's own part."""
    setting, step_s = runs[0].setting, runs[0].columns.step_s
    measured_s = float(np.mean(np.concatenate([_taken_s(run.columns) for run in runs])))

    def simulated_s(asked: tuple[Demand, ...]) -> float:
        run = simulate_steady(asked, step_s, setting, machine)
        return float(np.mean(run.delivered_s - np.maximum(run.asked_s, run.sent_s)))

    if simulated_s(demands) > measured_s:
        low, high = 0.0, 1.0
        if simulated_s(_waiting_for_interpreters(demands, low)) < measured_s:
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                longer = simulated_s(_waiting_for_interpreters(demands, middle)) > measured_s
                low, high = (low, middle) if longer else (middle, high)
            return _waiting_for_interpreters(demands, (low + high) / 2)
        demands = _waiting_for_interpreters(demands, low)
    fitted, late_s = demands, 0.0
    for _ in range(_FITS):
        late_s += measured_s - simulated_s(fitted)
        fitted = tuple(_later(each, late_s) for each in demands)
    return fitted


def _waiting_for_interpreters(demands: tuple[Demand, ...], times: float) -> tuple[Demand, ...]:
    """``demands`` with waits for interpreters that are ``times`` as long."""
    return tuple(
        replace(each, receive_held_s=times * min(each.receive_held_s, _LONGEST_S))
        for each in demands
    )


def _taken_s(columns: Columns) -> Floats:
    """From when a batch was sent and main waited for it, until main had it."""
    taken_s: Floats = columns.delivered_s - np.fmax(columns.asked_s, columns.sent_s)
    return taken_s[~np.isnan(columns.sent_s)]


def _later(demand: Demand, late_s: float) -> Demand:
    """``demand`` received later by ``late_s``; sooner, if that is negative."""
    if late_s >= 0:
        return replace(demand, late_s=late_s)
    return replace(demand, receive_s=max(0.0, demand.receive_s + late_s))
