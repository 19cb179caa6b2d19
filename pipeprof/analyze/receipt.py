"""What main takes to receive a batch, so that whole runs are repeated on average: which typical
figures of single moments do not see to.

Beside workers that compute, main is woken late, and so are they when it asks them for the files of
a batch's shared memory. And there are loaders whose batches two workers hand over sooner than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.analyze.simulate import Demand, Machine, simulate, stepping
from pipeprof.analyze.way import Measured

_FITS = 3


def receiving(
    demands: tuple[Demand, ...], machine: Machine, runs: Sequence[Measured]
) -> tuple[Demand, ...]:
    """With main taking as long to receive a batch as it did in ``runs``, which are of one
    setting."""
    setting, step_s = runs[0].setting, runs[0].columns.step_s
    measured_s = float(np.mean(np.concatenate([_taken_s(run.columns) for run in runs])))
    fitted, late_s = demands, 0.0
    for _ in range(_FITS):
        run = simulate(stepping(fitted, step_s), setting, machine).after(setting.warmup)
        simulated_s = np.mean(run.delivered_s - np.maximum(run.asked_s, run.sent_s))
        late_s += measured_s - float(simulated_s)
        fitted = tuple(_later(each, late_s) for each in demands)
    return fitted


def _taken_s(columns: Columns) -> Floats:
    """From when a batch was sent, and main wanted it, until main had it."""
    taken_s: Floats = columns.delivered_s - np.fmax(columns.asked_s, columns.sent_s)
    return taken_s[~np.isnan(columns.sent_s)]


def _later(demand: Demand, late_s: float) -> Demand:
    """Or sooner, below zero."""
    if late_s >= 0:
        return replace(demand, late_s=late_s)
    return replace(demand, receive_s=max(0.0, demand.receive_s + late_s))
