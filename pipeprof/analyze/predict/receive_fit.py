"""Fit the time that main, or the thread that pins, takes to receive a batch, so that simulations
repeat whole runs on average. Medians of single moments do not achieve that.

While workers compute, the receiver is woken late, and so are they when it asks them for the files
of a batch's shared memory. With some loaders two workers hand over batches sooner than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.simulated_run import SimulatedRun
from pipeprof.analyze.predict.workload import Demand, Machine, Measured
from pipeprof.analyze.profile.batch_table import Columns, Floats, pinned_before_s

_ITERATIONS = 3
_HALVINGS = 6
_LONGEST_S = 0.1
"""Assumed wait for a worker's interpreter where it was never observed to be released."""


def fit_receiving(
    demands: tuple[Demand, ...], machine: Machine, runs: Sequence[Measured]
) -> tuple[Demand, ...]:
    """Return ``demands`` with which a batch is received as fast as in ``runs`` of one setting.

    If ``demands`` take longer, the waits for workers' interpreters are shortened first, as they are
    the least certain. Then the receiver's own part is changed.
    """
    setting, step_s = runs[0].setting, runs[0].step_s(runs[0].setting)
    pins = setting.pin_memory
    known_s = np.concatenate([_receive_s(run.columns, pins) for run in runs])
    if not len(known_s):
        return demands
    measured_s = float(known_s.mean())

    def simulated_s(demands: tuple[Demand, ...]) -> float:
        run = simulate_steady(demands, step_s, setting, machine)
        return float(np.mean(_receive_s(run, pins)))

    if simulated_s(demands) > measured_s:
        low, high = 0.0, 1.0
        if simulated_s(_scaled_waits(demands, low)) < measured_s:
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                longer = simulated_s(_scaled_waits(demands, middle)) > measured_s
                low, high = (low, middle) if longer else (middle, high)
            return _scaled_waits(demands, (low + high) / 2)
        demands = _scaled_waits(demands, low)
    fitted, late_s = demands, 0.0
    for _ in range(_ITERATIONS):
        late_s += measured_s - simulated_s(fitted)
        fitted = tuple(_delayed(each, late_s) for each in demands)
    return fitted


def _scaled_waits(demands: tuple[Demand, ...], scale: float) -> tuple[Demand, ...]:
    """Return ``demands`` with their waits for interpreters multiplied by ``scale``."""
    return tuple(
        replace(each, receive_blocked_s=scale * min(each.receive_blocked_s, _LONGEST_S))
        for each in demands
    )


def _receive_s(run: Columns | SimulatedRun, pins: bool) -> Floats:
    """Return the seconds from when a batch was sent and its receiver was free, until main had it,
    or the thread had pinned it. Batches for which that is unknown are left out."""
    free_s, end_s = run.asked_s, run.delivered_s
    if pins:
        free_s, end_s = pinned_before_s(run.pinned_s, run.index), run.pinned_s
    receive_s: Floats = end_s - np.maximum(free_s, run.sent_s)
    return receive_s[~np.isnan(receive_s)]


def _delayed(demand: Demand, late_s: float) -> Demand:
    """Return ``demand`` received later by ``late_s``; sooner if that is negative."""
    if late_s >= 0:
        return replace(demand, late_s=late_s)
    return replace(demand, receive_s=max(0.0, demand.receive_s + late_s))
