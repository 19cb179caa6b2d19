"""Throughput and starved fraction in another setting, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, isinf, log2

import numpy as np

from pipeprof.analyze.predict.calibrate import Calibration, waits
from pipeprof.analyze.predict.dataloader_sim import Run, simulate_steady
from pipeprof.analyze.predict.workload import Demand, Setting
from pipeprof.analyze.profile.batch_table import Floats
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.units import percent

ROUNDS = 20
BATCHES = 300
"""Of a simulated run, after those that warm it up."""
_NORMAL_90_OF_FEW = 2.0
"""`NORMAL_90` of a standard deviation that about six values estimate."""
_FAR = 0.02
"""Relative noise that each doubling of workers adds beyond those that were measured: what they cost
each other is ever less certain."""
UNSTEADY = 0.15
"""Relative standard deviation of runs in one setting, above which no number is predicted."""
TOLD_APART = 0.05
"""Predictions that differ by less, relatively, count as one."""
_EXPENSIVE_S, _BOUND = 0.005, 0.6
"""A batch that main takes so long to receive consists of many hand-shakes. What these take depends
on which cores the processes run on. Where they are such a share of the time, a run shows it for its
own setting only."""
_HAND_SHAKES = (
    "the training process does little but receive batches, and what that takes with so many "
    "workers no run has told"
)
_ROOM = "what workers wait for may have no room for more of them"
_OTHERWISE = 0.35
"""How far that differs in another setting, relatively: `benchmarks.prediction`'s *many tensors*."""


@dataclass(frozen=True)
class Prediction:
    """What one setting would give."""

    setting: Setting
    batches_per_s: float
    interval: tuple[float, float]
    """90 % interval of ``batches_per_s``."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    settle: str = ""
    """The short run that would narrow the interval most, where it is wide; else empty."""
    why: str = ""
    """Why the runs so far do not suffice; else empty."""

    @property
    def half_width(self) -> float:
        """Half of the interval, relative to ``batches_per_s``."""
        low, high = self.interval
        return (high - low) / 2 / self.batches_per_s


def predict(
    found: Calibration,
    setting: Setting,
    step_s: Floats,
    rounds: int = ROUNDS,
    lone: bool = False,
    batches: int = BATCHES,
    measured: int = 2,
) -> Prediction:
    """Simulate ``setting`` on resampled batches.

    Args:
        found: What batches ask for, and of which machine.
        setting: Of the loader.
        step_s: The training steps in seconds, which are repeated as often as needed.
        rounds: Of the bootstrap.
        lone: ``found`` is of a single run, so that the bootstrap has to show what the batches of
            runs differ by.
        batches: Of the run whose interval is wanted; at most `BATCHES` are simulated.
        measured: The most workers of the runs behind ``found``.
    """
    size = min(batches, BATCHES) + setting.unsteady
    runs = _bootstrapped(found, setting, step_s, rounds, size, lone)
    means = [_rate(each) for each in runs]
    every = [run for each in runs for run in each]
    untold = not _like(setting, measured, lone) and _handing_over(every)
    unsure = untold or max(means) > (1 + TOLD_APART) * min(means)
    mean, rates = float(np.mean(means)), np.array([run.batches_per_s for run in every])
    starved = np.array([run.starved_fraction for run in every])
    least, most = np.percentile(starved, [5, 95])
    noise = found.noise if lone else hypot(found.noise, _FAR * doublings(setting, measured))
    differs = _OTHERWISE if untold else NORMAL_90 * noise
    wide = min(1.0, hypot(found.disagreement, differs))
    return Prediction(
        setting,
        mean,
        _interval(rates, mean, found.disagreement, differs, lone),
        float(starved.mean()),
        (max(0.0, float(least) - wide), min(1.0, float(most) + wide)),
        settle_by(setting) + _ahead(setting) if unsure else _steadier(found),
        _HAND_SHAKES if untold else _ROOM if unsure else "",
    )


def _bootstrapped(
    found: Calibration, setting: Setting, step_s: Floats, rounds: int, size: int, lone: bool
) -> list[list[Run]]:
    """``rounds`` runs on resampled batches, for each number of workers that may wait
    concurrently."""
    demands, chance = found.of(setting), np.random.default_rng(0)
    return [
        [
            simulate_steady(_resampled(demands, chance, size, lone), step_s, setting, machine)
            for _ in range(rounds)
        ]
        for machine in map(found.machine_with, _rooms(found, setting))
    ]


def settle_by(setting: Setting) -> str:
    return f"a short run with num_workers={setting.num_workers}"


def _steadier(found: Calibration) -> str:
    if found.noise <= UNSTEADY:
        return ""
    return f"longer runs, since those with the same setting differ by {percent(found.noise)}"


def doublings(setting: Setting, measured: int) -> float:
    """How often the workers that were measured double, up to those of ``setting``."""
    return log2(max(1.0, setting.num_workers / max(1, measured)))


def _ahead(setting: Setting) -> str:
    """What to add for one worker that prefetches, as one was run that does not."""
    ahead = setting.num_workers == 1 and setting.prefetch_factor > 1
    return f" and prefetch_factor={setting.prefetch_factor}" if ahead else ""


def _like(setting: Setting, measured: int, lone: bool) -> bool:
    """Whether it was measured how batches are handed over in ``setting``."""
    if lone:
        return setting.num_workers == measured
    return setting.num_workers <= measured and not _ahead(setting)


def _handing_over(runs: Sequence[Run]) -> bool:
    """Whether receiving batches is most of what main does, and expensive."""
    handed_s = sum(float((run.delivered_s - np.maximum(run.asked_s, run.sent_s)).sum())
                   for run in runs)  # fmt: skip
    return bool(
        handed_s > _EXPENSIVE_S * sum(len(run.order) for run in runs)
        and handed_s > _BOUND * sum(run.wall_s for run in runs)
    )


def _interval(
    rates: Floats, mean: float, disagreement: float, noise: float, lone: bool
) -> tuple[float, float]:
    """90 % of the rate: what bootstrapped runs differ by, or what real ones did, whichever is more,
    and how far the model is from its own runs. Of a ``lone`` run both of the former add up: its
    noise does not include that its batches are a sample."""
    low, high = np.percentile(rates, [5, 95]) / mean
    if lone:
        half = hypot(_NORMAL_90_OF_FEW * float(np.std(rates, ddof=1)) / mean, noise)
        below, above = max(half, 1 - low), max(half, high - 1)
    else:
        below, above = max(noise, 1 - low), max(noise, high - 1)
    below, above = hypot(disagreement, below), hypot(disagreement, above)
    return mean * max(0.0, 1 - below), mean * (1 + above)


def _rooms(found: Calibration, setting: Setting) -> tuple[float, ...]:
    """How many workers can wait concurrently. Where no limit was observed, there may be one just
    beyond what was tried, or none."""
    if isinf(found.shared_from) and setting.num_workers > found.tried and waits(found.demands):
        return float(found.tried), inf
    return (found.shared_from,)


def _rate(runs: Sequence[Run]) -> float:
    """Batches/s of all runs together, which is less than the mean of their rates."""
    wall_s = sum(run.wall_s for run in runs)
    return sum(len(run.order) for run in runs) / wall_s if wall_s else inf


def _resampled(
    demands: Sequence[Demand], chance: np.random.Generator, size: int, lone: bool
) -> list[Demand]:
    """Demands of ``size`` batches; of a ``lone`` run they are drawn from a resampled run."""
    sample = _blocks(demands, chance, len(demands)) if lone else demands
    return _blocks(sample, chance, size)


def _blocks(demands: Sequence[Demand], chance: np.random.Generator, count: int) -> list[Demand]:
    """In blocks, so that what belongs together stays together."""
    length = max(1, round(len(demands) ** 0.5))
    starts = chance.integers(0, len(demands), size=-(-count // length))
    rows = (starts[:, np.newaxis] + np.arange(length)) % len(demands)
    return [demands[row] for row in rows.ravel()[:count]]
