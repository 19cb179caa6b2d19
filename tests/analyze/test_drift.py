"""Runs of one setting on machines whose speed drifts in ways that are known: how often two are
reported to differ that do not, and whether a real loss is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pipeprof.analyze.compare.runs import two_runs
from pipeprof.analyze.profile.drift import Drift, between
from pipeprof.model import TwoRuns
from tests.comparisons import paced
from tests.stage_samples import stage_stats

Floats = npt.NDArray[np.float64]
TURN_S = 0.020
BATCHES, GAP = 160, 50
"""Of a run, and between two: three seconds, and one."""
PAIRS = 40
COMPUTING = {"cpu": stage_stats(17.0), "blocked": stage_stats(1.0)}


def steady(chance: np.random.Generator, count: int) -> Floats:
    return np.zeros(count)


def autoregressive(
    chance: np.random.Generator, count: int, seconds: float = 1.0, sd: float = 0.1
) -> Floats:
    """Log speed that is forgotten after so many seconds."""
    keep = np.exp(-TURN_S / seconds)
    drawn = chance.normal(0, sd, count)
    for place in range(1, count):
        drawn[place] = keep * drawn[place - 1] + np.sqrt(1 - keep**2) * drawn[place]
    return drawn


def flickering(chance: np.random.Generator, count: int) -> Floats:
    """As much power in each octave, from 0.1 s to 100: as a shared machine was measured to have."""
    each = (autoregressive(chance, count, seconds, 0.06)
            for seconds in (0.1, 0.4, 1.6, 6.4, 25.6, 100.0))  # fmt: skip
    return np.sum(list(each), axis=0)


def walking(chance: np.random.Generator, count: int) -> Floats:
    """By 5 % in a second."""
    return np.cumsum(chance.normal(0, 0.05 * TURN_S**0.5, count))


SPEEDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "steady": steady,
    "forgotten in a second": autoregressive,
    "flickering": flickering,
    "a random walk": walking,
}


def pairs(speed: str, jitter: float = 0.1, lost: float = 0.0, **changes: object) -> list[TwoRuns]:
    """Two runs a second apart of a loader whose batches differ by ``jitter``; the later gives
    fewer samples/s by the share ``lost``."""
    found = []
    for seed in range(PAIRS):
        chance = np.random.default_rng(seed)
        log_speed = SPEEDS[speed](chance, 2 * BATCHES + GAP)
        turns_s = TURN_S * np.exp(log_speed + chance.normal(0, jitter, len(log_speed)))
        before, after = turns_s[:BATCHES], turns_s[BATCHES + GAP :] / (1 - lost)
        found.append(two_runs(paced(before, **changes), paced(after, **changes), ("a", "b")))
    return found


def shown(found: list[TwoRuns], what: str) -> int:
    return sum(pair.speed.shown == what for pair in found)


def test_at_most_one_pair_in_twenty_is_reported_to_differ_that_does_not() -> None:
    equal = {speed: pairs(speed, resources=COMPUTING) for speed in SPEEDS}
    wrong = {speed: PAIRS - shown(found, "none") for speed, found in equal.items()}
    assert wrong["steady"] == 0
    assert sum(wrong.values()) <= 0.05 * PAIRS * len(SPEEDS), wrong


def test_by_their_batches_alone_they_would_be() -> None:
    """The control: the same runs, without what runs of one setting differ by."""
    wrong = 0
    for seed in range(PAIRS):
        chance = np.random.default_rng(seed)
        turns_s = TURN_S * np.exp(flickering(chance, 2 * BATCHES + GAP))
        runs = paced(turns_s[:BATCHES]), paced(turns_s[BATCHES + GAP :])
        wrong += two_runs(*runs, ("a", "b"), drift=0.0).speed.shown != "none"
    assert wrong > 0.2 * PAIRS


def test_a_loss_of_ten_per_cent_on_a_steady_loader_is_found_every_time() -> None:
    assert shown(pairs("steady", jitter=0.05, lost=0.1), "slower") == PAIRS
    handed = pairs("steady", jitter=0.05, lost=0.1, blame={"transfer": 3.0})
    assert shown(handed, "slower") == PAIRS, "also of a loader that waits for batches handed over"
    assert shown(pairs("steady", jitter=0.1, lost=0.1), "slower") >= 0.9 * PAIRS


def test_drift_is_what_longer_runs_do_not_average_out() -> None:
    chance = np.random.default_rng(0)
    alike, drifting = [], []
    for _ in range(50):
        jitter = np.exp(chance.normal(0, 0.3, 400))
        alike.append(Drift.of(jitter))
        drifting.append(Drift.of(jitter * np.exp(autoregressive(chance, 400, seconds=4.0))))
    assert None not in alike + drifting
    lasting = [np.mean([each.lasting for each in runs if each]) for runs in (alike, drifting)]
    assert lasting[0] < 0.001, "a tenth of what eighths of the run differ by"
    assert lasting[1] == pytest.approx(0.1**2 * 0.6, rel=0.5)
    passing = np.mean([each.passing for each in alike if each])
    assert passing == pytest.approx(0.3**2 / 400, rel=0.2)


def test_too_little_or_damaged_tells_nothing() -> None:
    assert Drift.of(np.full(15, 0.02)) is None
    assert Drift.of(np.full(16, 0.02)) == Drift()
    assert Drift.of(np.zeros(100)) is None
    assert Drift.of(np.full(100, np.nan)) is None
    assert between(None, None) == 0.0
    assert between(Drift(0.01), None) == pytest.approx(0.318, rel=0.01)
