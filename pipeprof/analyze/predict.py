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
"""Of a simulated run."""
_SIGMAS = 1.645
"""Either side, 90 % of a normal distribution."""
_TOLD_APART = 0.05
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
    found: Calibration, setting: Setting, step_s: Floats, seed: int = 0, rounds: int = ROUNDS
) -> Prediction:
    """``step_s``: the training steps, one after another, which come round again. ``rounds``: of the
    bootstrap, each of which simulates a run."""
    demands = found.demands if setting.num_workers else found.inline
    chance = np.random.default_rng(seed)
    rooms = _rooms(found, setting)
    runs = {
        room: [
            _run(found, _resampled(demands, chance), setting, step_s, room) for _ in range(rounds)
        ]
        for room in rooms
    }
    means = [float(np.mean([run.batches_per_s for run in each])) for each in runs.values()]
    unsure = max(means) > (1 + _TOLD_APART) * min(means)
    every = [run for each in runs.values() for run in each]
    rates = np.array([run.batches_per_s for run in every])
    starved = np.array([run.starved_fraction for run in every])
    least, most = np.percentile(starved, [5, 95])
    wide = min(1.0, hypot(found.disagreement, _SIGMAS * found.noise))
    return Prediction(
        setting,
        float(np.mean(means)),
        _interval(rates, float(np.mean(means)), found),
        float(starved.mean()),
        (max(0.0, float(least) - wide), min(1.0, float(most) + wide)),
        f"a short run with num_workers={setting.num_workers}" if unsure else "",
    )


def _interval(rates: Floats, mean: float, found: Calibration) -> tuple[float, float]:
    """What bootstrapped runs differ by, or real ones did, whichever is more: the latter's chance is
    that of the samples, too. And by how far the model is from its own runs."""
    low, high = np.percentile(rates, [5, 95]) / mean
    noise = _SIGMAS * found.noise
    below = hypot(found.disagreement, max(noise, 1 - low))
    above = hypot(found.disagreement, max(noise, high - 1))
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
    return waits > _TOLD_APART * sum(each.link_bytes + each.cpu_s for each in demands)


def _run(
    found: Calibration, demands: Sequence[Demand], setting: Setting, step_s: Floats, room: float
) -> Run:
    machine = replace(found.machine, link=Link(total=room, each=1.0))
    return simulate(stepping(demands, step_s), setting, machine).after(setting.warmup)


def _resampled(demands: Sequence[Demand], chance: np.random.Generator) -> list[Demand]:
    """By blocks, so that what belongs together stays together."""
    length = max(1, round(len(demands) ** 0.5))
    starts = chance.integers(0, len(demands), size=-(-BATCHES // length))
    return [
        demands[(start + offset) % len(demands)] for start in starts for offset in range(length)
    ][:BATCHES]
