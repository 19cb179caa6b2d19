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
"""`NORMAL_90` by some six values."""
_FAR = 0.02
"""By so much more, relatively, for each doubling of workers beyond those that were measured, a run
differs from a prediction: what they cost each other is known less and less."""
UNSTEADY = 0.15
"""Runs of one setting that differ by more, relatively (one standard deviation), tell no number."""
TOLD_APART = 0.05
"""Answers that differ by less are one."""
_DEAR_S, _BOUND = 0.005, 0.6
"""A batch that takes main so long to receive is one of many hand-shakes. What these take depends on
where the processes lie: runs tell it of their own setting only, where they are so much of it."""
_HAND_SHAKES = (
    "the training process does little but receive batches, and what that takes with so many "
    "workers no run has told"
)
_ROOM = "what workers wait for may have no room for more of them"
_OTHERWISE = 0.35
"""By up to so much, relatively, it differs in another: `benchmarks.prediction`'s *many tensors*."""


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
    why: str = ""
    """They cannot, in words; else empty."""

    @property
    def half_width(self) -> float:
        """Of the interval, relative to ``batches_per_s``."""
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
    """``step_s``: the training steps, one after another, which come round again. ``rounds``: of the
    bootstrap, each of which simulates a run of so many ``batches``, as the interval is of one as
    long; at most `BATCHES`, for the time that takes. ``lone``: no other runs tell by how much the
    batches of one differ from those of another, so the bootstrap has to. ``measured``: the most
    workers of a run that it rests on."""
    demands, size = found.of(setting), min(batches, BATCHES) + setting.unsteady
    chance = np.random.default_rng(0)
    runs = [
        [
            simulate_steady(_resampled(demands, chance, size, lone), step_s, setting, machine)
            for _ in range(rounds)
        ]
        for machine in map(found.machine_with, _rooms(found, setting))
    ]
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


def settle_by(setting: Setting) -> str:
    return f"a short run with num_workers={setting.num_workers}"


def _steadier(found: Calibration) -> str:
    if found.noise <= UNSTEADY:
        return ""
    return f"longer runs, since those with the same setting differ by {percent(found.noise)}"


def doublings(setting: Setting, measured: int) -> float:
    """Of the workers that were measured, to those of ``setting``."""
    return log2(max(1.0, setting.num_workers / max(1, measured)))


def _ahead(setting: Setting) -> str:
    """One worker was run, but not ahead of its training."""
    ahead = setting.num_workers == 1 and setting.prefetch_factor > 1
    return f" and prefetch_factor={setting.prefetch_factor}" if ahead else ""


def _like(setting: Setting, measured: int, lone: bool) -> bool:
    """Whether batches were seen to be handed over as they are in ``setting``."""
    if lone:
        return setting.num_workers == measured
    return setting.num_workers <= measured and not _ahead(setting)


def _handing_over(runs: Sequence[Run]) -> bool:
    """Whether that is most of what main does, and dear."""
    handed_s = sum(float((run.delivered_s - np.maximum(run.asked_s, run.sent_s)).sum())
                   for run in runs)  # fmt: skip
    return bool(
        handed_s > _DEAR_S * sum(len(run.order) for run in runs)
        and handed_s > _BOUND * sum(run.wall_s for run in runs)
    )


def _interval(
    rates: Floats, mean: float, disagreement: float, noise: float, lone: bool
) -> tuple[float, float]:
    """What bootstrapped runs differ by, or real ones did, whichever is more: the latter's chance is
    that of the samples, too, unless the run was a ``lone`` one. And by how far the model is from
    its own runs."""
    low, high = np.percentile(rates, [5, 95]) / mean
    if lone:
        half = hypot(_NORMAL_90_OF_FEW * float(np.std(rates, ddof=1)) / mean, noise)
        below, above = max(half, 1 - low), max(half, high - 1)
    else:
        below, above = max(noise, 1 - low), max(noise, high - 1)
    below, above = hypot(disagreement, below), hypot(disagreement, above)
    return mean * max(0.0, 1 - below), mean * (1 + above)


def _rooms(found: Calibration, setting: Setting) -> tuple[float, ...]:
    """How many workers may wait beside each other: where no limit was seen, there may be one just
    beyond what was tried, or none."""
    if isinf(found.shared_from) and setting.num_workers > found.tried and waits(found.demands):
        return float(found.tried), inf
    return (found.shared_from,)


def _rate(runs: Sequence[Run]) -> float:
    """Batches/s of them all: the mean of their own would be more."""
    wall_s = sum(run.wall_s for run in runs)
    return sum(len(run.order) for run in runs) / wall_s if wall_s else inf


def _resampled(
    demands: Sequence[Demand], chance: np.random.Generator, size: int, lone: bool
) -> list[Demand]:
    """A run's, so many; if it is ``lone``, of a sample that might have been measured as well."""
    sample = _blocks(demands, chance, len(demands)) if lone else demands
    return _blocks(sample, chance, size)


def _blocks(demands: Sequence[Demand], chance: np.random.Generator, count: int) -> list[Demand]:
    """In blocks, so that what belongs together stays together."""
    length = max(1, round(len(demands) ** 0.5))
    starts = chance.integers(0, len(demands), size=-(-count // length))
    rows = (starts[:, np.newaxis] + np.arange(length)) % len(demands)
    return [demands[row] for row in rows.ravel()[:count]]
