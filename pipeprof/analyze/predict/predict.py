"""Predict the throughput and the starved fraction of another setting, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, inf, isinf, log2

import numpy as np

from pipeprof.analyze.predict.calibrate import Calibration, has_waits
from pipeprof.analyze.predict.dataloader_sim import simulate_steady
from pipeprof.analyze.predict.simulated_run import SimulatedRun
from pipeprof.analyze.predict.workload import Demand, Setting
from pipeprof.analyze.profile.batch_table import Floats
from pipeprof.analyze.profile.intervals import NORMAL_90
from pipeprof.analyze.thresholds import EQUAL_WITHIN

ROUNDS = 20
BATCHES = 300
"""Batches of a simulated run, without those of its warm-up."""
_NORMAL_90_OF_FEW = 2.0
"""`NORMAL_90` for a standard deviation that is estimated from about six values."""
_NOISE_PER_DOUBLING = 0.02
"""Relative noise that each doubling of workers adds beyond those that were measured. What more
workers cost each other is less certain."""
_UNSTEADY = 0.15
"""Relative standard deviation of runs in one setting, above which no number is predicted."""
_EXPENSIVE_S, _MAIN_BOUND = 0.005, 0.6
"""Seconds to receive a batch, and their share of the run, from which hand-shakes between processes
dominate. How long these take depends on the cores, so that a run shows it only for its setting."""
_HAND_OVER_NOISE = 0.35
"""Relative difference of the hand-shakes in another setting, as measured for *many tensors* in
`benchmarks.prediction`."""


@dataclass(frozen=True)
class Prediction:
    """Predicted figures of one setting."""

    setting: Setting
    batches_per_s: float
    interval: tuple[float, float]
    """90 % interval of ``batches_per_s``."""
    starved_fraction: float
    starved_interval: tuple[float, float]
    """90 % interval of ``starved_fraction``."""
    deciding_run: Mapping[str, object] = field(default_factory=dict)
    """The short run that would narrow the interval most: ``num_workers`` and ``prefetch_factor`` if
    another setting is to be run, ``noise`` if the same is; empty where the interval is narrow."""
    open_question: str = ""
    """Code of what the runs so far do not show; else empty. `analyze.wording.prediction` has the
    sentences for both."""

    @property
    def half_width(self) -> float:
        """Half of the interval, relative to ``batches_per_s``."""
        low, high = self.interval
        return (high - low) / 2 / self.batches_per_s


def predict(
    calibration: Calibration,
    setting: Setting,
    step_s: Floats,
    rounds: int = ROUNDS,
    lone: bool = False,
    batches: int = BATCHES,
    measured: int = 2,
) -> Prediction:
    """Simulate ``setting`` on resampled batches.

    Args:
        calibration: What batches ask of the machine, and the machine.
        setting: The setting of the loader to predict.
        step_s: The training steps in seconds, which are repeated as often as needed.
        rounds: The number of bootstrap rounds.
        lone: Whether ``calibration`` is of a single run. Then the bootstrap has to show the
            differences between the batches of runs.
        batches: Batches of the run whose interval is wanted; at most `BATCHES` are simulated.
        measured: The most workers of the runs behind ``calibration``.
    """
    size = min(batches, BATCHES) + setting.unsteady
    by_limit = _bootstrapped(calibration, setting, step_s, rounds, size, lone)
    means = [_rate(runs) for runs in by_limit]
    every = [run for runs in by_limit for run in runs]
    known = _hand_over_measured(calibration, setting, measured, lone)
    unmeasured = not known and _hand_over_bound(every)
    undecided = unmeasured or max(means) > (1 + EQUAL_WITHIN) * min(means)
    mean, rates = float(np.mean(means)), np.array([run.batches_per_s for run in every])
    starved = np.array([run.starved_fraction for run in every])
    least, most = np.percentile(starved, [5, 95])
    more_noise = 0.0 if lone else _NOISE_PER_DOUBLING * doublings(setting, measured)
    noise = _HAND_OVER_NOISE if unmeasured else NORMAL_90 * hypot(calibration.noise, more_noise)
    margin = min(1.0, hypot(calibration.disagreement, noise))
    return Prediction(
        setting,
        mean,
        _interval(rates, mean, calibration.disagreement, noise, lone),
        float(starved.mean()),
        (max(0.0, float(least) - margin), min(1.0, float(most) + margin)),
        _run_of(setting) if undecided else _longer_runs(calibration),
        "hand-over" if unmeasured else "shared-wait" if undecided else "",
    )


def _bootstrapped(
    calibration: Calibration, setting: Setting, step_s: Floats, rounds: int, size: int, lone: bool
) -> list[list[SimulatedRun]]:
    """Simulate ``rounds`` runs on resampled batches for each possible limit of concurrent waits."""
    demands, random = calibration.of(setting), np.random.default_rng(0)
    return [
        [
            simulate_steady(_resampled(demands, random, size, lone), step_s, setting, machine)
            for _ in range(rounds)
        ]
        for machine in map(calibration.machine_with, _wait_limits(calibration, setting))
    ]


def _longer_runs(calibration: Calibration) -> dict[str, object]:
    """Ask for longer runs of the same setting where these differ too much."""
    return {"noise": calibration.noise} if calibration.noise > _UNSTEADY else {}


def _run_of(setting: Setting) -> dict[str, object]:
    """Ask for a run of ``setting``. With one worker, its ``prefetch_factor`` has to be given."""
    run: dict[str, object] = {"num_workers": setting.num_workers}
    if setting.num_workers == 1:
        run["prefetch_factor"] = setting.prefetch_factor
    return run


def doublings(setting: Setting, measured: int) -> float:
    """Return how often the number of measured workers doubles up to that of ``setting``."""
    return log2(max(1.0, setting.num_workers / max(1, measured)))


def _hand_over_measured(
    calibration: Calibration, setting: Setting, measured: int, lone: bool
) -> bool:
    """Whether a run shows how batches are handed over in ``setting``. A single worker that
    prefetches is at its next batch meanwhile; one that does not is idle."""
    if lone:
        return setting.num_workers == measured
    if setting.num_workers == 1:
        return (setting.prefetch_factor > 1) is calibration.one_prefetches
    return setting.num_workers <= measured


def _hand_over_bound(runs: Sequence[SimulatedRun]) -> bool:
    """Whether receiving batches is expensive and most of what main does."""
    received_s = sum(float((run.delivered_s - np.maximum(run.asked_s, run.sent_s)).sum())
                     for run in runs)  # fmt: skip
    return bool(
        received_s > _EXPENSIVE_S * sum(len(run.order) for run in runs)
        and received_s > _MAIN_BOUND * sum(run.wall_s for run in runs)
    )


def _interval(
    rates: Floats, mean: float, disagreement: float, noise: float, lone: bool
) -> tuple[float, float]:
    """Return the 90 % interval of the rate. It covers the larger of the bootstrap's spread and
    ``noise``, and the error of the model. Of a ``lone`` run spread and noise add up, as its noise
    does not include the choice of batches."""
    low, high = np.percentile(rates, [5, 95]) / mean
    if lone:
        noise = hypot(_NORMAL_90_OF_FEW * float(np.std(rates, ddof=1)) / mean, noise)
    below, above = (hypot(disagreement, max(noise, each)) for each in (1 - low, high - 1))
    return mean * max(0.0, 1 - below), mean * (1 + above)


def _wait_limits(calibration: Calibration, setting: Setting) -> tuple[float, ...]:
    """Return the possible numbers of workers that can wait concurrently at full speed. Where no
    limit was observed, there may be one just beyond the workers that were tried, or none."""
    tried = calibration.most_workers
    unlimited = isinf(calibration.concurrent_waits)
    if unlimited and setting.num_workers > tried and has_waits(calibration.demands):
        return float(tried), inf
    return (calibration.concurrent_waits,)


def _rate(runs: Sequence[SimulatedRun]) -> float:
    """Return batches/s of all runs together, which is less than the mean of their rates."""
    wall_s = sum(run.wall_s for run in runs)
    return sum(len(run.order) for run in runs) / wall_s if wall_s else inf


def _resampled(
    demands: Sequence[Demand], random: np.random.Generator, size: int, lone: bool
) -> list[Demand]:
    """Draw the demands of ``size`` batches; of a ``lone`` run from a resampled run."""
    sample = _in_blocks(demands, random, len(demands)) if lone else demands
    return _in_blocks(sample, random, size)


def _in_blocks(demands: Sequence[Demand], random: np.random.Generator, count: int) -> list[Demand]:
    """Draw ``count`` demands in blocks, which keep correlated batches together."""
    length = max(1, round(len(demands) ** 0.5))
    starts = random.integers(0, len(demands), size=-(-count // length))
    rows = (starts[:, np.newaxis] + np.arange(length)) % len(demands)
    return [demands[row] for row in rows.ravel()[:count]]
