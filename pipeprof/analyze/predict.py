"""Throughput and starved fraction in another setting, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, isinf

import numpy as np

from pipeprof.analyze.calibrate import Calibration, stepping
from pipeprof.analyze.columns import Floats
from pipeprof.analyze.simulate import Demand, Link, Run, Setting, simulate

ROUNDS = 20
BATCHES = 300
"""Of a simulated run, after those that warm it up."""
_SIGMAS = 1.645
"""Either side, 90 % of a normal distribution."""
_SIGMAS_OF_FEW = 2.0
"""The same, by some six values."""
TOLD_APART = 0.05
"""Answers that differ by less are one."""


@dataclass(frozen=True)
class Prediction:
    """Of one setting."""

    setting: Setting
    batches_per_s: float
    interval: tuple[float, float]
    """90 % of ``batches_per_s``."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    settle: str = ""
    """The one short run that would tell more, where the runs so far cannot; else empty."""


def predict(
    found: Calibration,
    setting: Setting,
    step_s: Floats,
    seed: int = 0,
    rounds: int = ROUNDS,
    lone: bool = False,
) -> Prediction:
    """``step_s``: the training steps, one after another, which come round again. ``rounds``: of the
    bootstrap, each of which simulates a run. ``lone``: no other runs tell by how much the batches
    of one differ from those of another, so the bootstrap has to."""
    demands = found.demands if setting.num_workers else found.inline
    chance = np.random.default_rng(seed)
    rooms = _rooms(found, setting)
    runs = {
        room: [
            _run(found, _resampled(demands, chance, setting, lone), setting, step_s, room)
            for _ in range(rounds)
        ]
        for room in rooms
    }
    means = [float(np.mean([run.batches_per_s for run in each])) for each in runs.values()]
    unsure = max(means) > (1 + TOLD_APART) * min(means)
    every = [run for each in runs.values() for run in each]
    rates = np.array([run.batches_per_s for run in every])
    starved = np.array([run.starved_fraction for run in every])
    least, most = np.percentile(starved, [5, 95])
    wide = min(1.0, hypot(found.disagreement, _SIGMAS * found.noise))
    return Prediction(
        setting,
        float(np.mean(means)),
        _interval(rates, float(np.mean(means)), found, lone),
        float(starved.mean()),
        (max(0.0, float(least) - wide), min(1.0, float(most) + wide)),
        settle_by(setting) if unsure else "",
    )


def settle_by(setting: Setting) -> str:
    return f"a short run with num_workers={setting.num_workers}"


def _interval(rates: Floats, mean: float, found: Calibration, lone: bool) -> tuple[float, float]:
    """What bootstrapped runs differ by, or real ones did, whichever is more: the latter's chance is
    that of the samples, too, unless the run was a ``lone`` one. And by how far the model is from
    its own runs."""
    low, high = np.percentile(rates, [5, 95]) / mean
    noise = _SIGMAS * found.noise
    if lone:
        half = hypot(_SIGMAS_OF_FEW * float(np.std(rates, ddof=1)) / mean, noise)
        below, above = max(half, 1 - low), max(half, high - 1)
    else:
        below, above = max(noise, 1 - low), max(noise, high - 1)
    below, above = hypot(found.disagreement, below), hypot(found.disagreement, above)
    return mean * max(0.0, 1 - below), mean * (1 + above)


def _rooms(found: Calibration, setting: Setting) -> tuple[float, ...]:
    """How many workers may wait beside each other: where no limit was seen, there may be one just
    beyond what was tried, or none."""
    if isinf(found.shared_from) and setting.num_workers > found.tried and _waits(found.demands):
        return float(found.tried), inf
    return (found.shared_from,)


def _waits(demands: Sequence[Demand]) -> bool:
    """Whether batches wait for something at all."""
    waits = sum(each.link_bytes for each in demands)
    return waits > TOLD_APART * sum(each.link_bytes + each.cpu_s for each in demands)


def _run(
    found: Calibration, demands: Sequence[Demand], setting: Setting, step_s: Floats, room: float
) -> Run:
    machine = replace(found.machine, link=Link(total=room, each=1.0))
    return simulate(stepping(demands, step_s), setting, machine).after(setting.warmup)


def _resampled(
    demands: Sequence[Demand], chance: np.random.Generator, setting: Setting, lone: bool
) -> list[Demand]:
    """A run's; if it is ``lone``, of a sample that might have been measured as well."""
    sample = _blocks(demands, chance, len(demands)) if lone else demands
    return _blocks(sample, chance, BATCHES + setting.warmup)


def _blocks(demands: Sequence[Demand], chance: np.random.Generator, count: int) -> list[Demand]:
    """So that what belongs together stays together."""
    length = max(1, round(len(demands) ** 0.5))
    starts = chance.integers(0, len(demands), size=-(-count // length))
    return [
        demands[(start + offset) % len(demands)] for start in starts for offset in range(length)
    ][:count]
