"""Compare two runs: is one faster, where did the time go, and is the difference significant.

The interval of a difference of means follows from the intervals of both (MOVER: Zou & Donner 2008).
But two runs of the same setting differ as well. So every interval is widened by how much they
usually do, and by how much these two drifted (`pipeprof.analyze.profile.drift`).
"""

from __future__ import annotations

from math import hypot
from statistics import NormalDist
from typing import Final, Literal

from pipeprof.analyze.compare.differences import (
    batch_sizes,
    changes,
    contention_change,
    one_size,
    share_of_fetch,
    unlike,
)
from pipeprof.analyze.compare.headline import headline
from pipeprof.analyze.compare.ratios import difference, ratio
from pipeprof.analyze.compare.run_intervals import Estimate, RunIntervals
from pipeprof.analyze.profile.drift import Drift, between
from pipeprof.analyze.profile.stage_times import BLOCKED
from pipeprof.analyze.profile.stall_attribution import MAIN
from pipeprof.analyze.thresholds import (
    DRIFT_OF_COMPUTING,
    DRIFT_OF_HAND_OVER,
    DRIFT_OF_WAITING,
    LEAST_BATCHES_FOR_VERDICT,
)
from pipeprof.model import Compared, Difference, Profile, Speed, Stage, TwoRuns

_HAND_OVER: Final = (Stage.TRANSFER, Stage.SERIALISE, Stage.PIPE, Stage.UNPICKLE, Stage.PIN,
                     Stage.REORDER, Stage.READY)  # fmt: skip
"""Stages that drift by `DRIFT_OF_HAND_OVER`, as they wait for other processes."""


def two_runs(
    before: Profile, after: Profile, files: tuple[str, str], drift: float | None = None
) -> TwoRuns:
    """Return the comparison of two runs, which the report names by ``files``. ``drift`` is the
    fraction by which two runs of one setting usually differ; ``None``: a typical value for runs
    like these."""
    per: Literal["batch", "sample"] = "batch" if one_size(before, after) else "sample"
    sizes = batch_sizes(before, after) if per == "sample" else (1.0, 1.0)
    both = RunIntervals(before, 1 / sizes[0]), RunIntervals(after, 1 / sizes[1])
    worker_drift = drift
    if drift is None or worker_drift is None:
        drifted = both[0].drift, both[1].drift
        worker_drift = hypot(_build_drift(before, after), between(*drifted))
        drift = between_runs(before, after, drifted)
    cycle_s = max(each.cycle_s for each in both)
    speed = _speed(before, after, both, drift)
    # the accelerator waits for as long as the cycle gets longer
    busy = 1 - min(max(0.0, before.diagnosis.starved_fraction, after.diagnosis.starved_fraction), 1)
    starved = _difference(both[0].starved(), both[1].starved(), drift * busy)
    stages = _stages(before, after, both, (worker_drift, drift), cycle_s)
    found = changes(before, after)
    return TwoRuns(
        before=_compared(before, files[0], both[0]),
        after=_compared(after, files[1], both[1]),
        headline=headline(before, after, speed, starved, stages, per),
        speed=speed,
        starved=starved,
        stall=_difference(both[0].stall(), both[1].stall(), drift * cycle_s),
        stages=stages,
        per=per,
        changes=found,
        unlike=unlike(before, after, found, stages.get(str(Stage.STEP))),
        between_runs=drift,
    )


def between_runs(
    before: Profile, after: Profile, drifted: tuple[Drift | None, Drift | None] = (None, None)
) -> float:
    """Return the fraction by which throughput may differ if one setting is run again. It is at
    least a typical value, plus the drift of these two runs. Two loaders that feed the accelerator
    hide how their workers differ."""
    fed = before.diagnosis.verdict == after.diagnosis.verdict == "fed"
    least = DRIFT_OF_WAITING if fed else _build_drift(before, after)
    if None in drifted:
        least += DRIFT_OF_HAND_OVER * max(_hand_over_share(before), _hand_over_share(after))
    return hypot(least, between(*drifted))


def _build_drift(before: Profile, after: Profile) -> float:
    """Return the least fraction by which the build time differs, also by others' use of cores."""
    computing = max(_computing_share(before), _computing_share(after))
    own = DRIFT_OF_WAITING + (DRIFT_OF_COMPUTING - DRIFT_OF_WAITING) * computing
    return own + contention_change(before, after)


def _hand_over_share(profile: Profile) -> float:
    """Return the share of the time in which the accelerator waited for finished batches, 0..1."""
    stalls = (profile.blame.get(str(name), 0.0) for name in (Stage.TRANSFER, Stage.PIN, MAIN))
    share = sum(stalls) / profile.wall_s if profile.wall_s > 0 else 0.0
    return min(1.0, max(0.0, share))


def _computing_share(profile: Profile) -> float:
    """Return the share of the build time that is not blocked, 0..1; 1 where it was not sampled."""
    blocked = share_of_fetch(profile, BLOCKED)
    return 1.0 if blocked is None else 1 - blocked


def _speed(
    before: Profile, after: Profile, both: tuple[RunIntervals, RunIntervals], drift: float
) -> Speed:
    one, other = both[1].throughput(), both[0].throughput()
    if min(one.samples_per_s, other.samples_per_s) <= 0:
        return Speed(None, None, "unknown")
    speed, interval = ratio(one, other, drift)
    if min(before.measured_batches, after.measured_batches) < LEAST_BATCHES_FOR_VERDICT:
        return Speed(speed, None, "unknown")
    return Speed(speed, interval, difference(speed, interval))


def _stages(
    before: Profile,
    after: Profile,
    both: tuple[RunIntervals, RunIntervals],
    drifts: tuple[float, float],
    cycle_s: float,
) -> dict[str, Difference]:
    """Return the difference of each stage that either run has. ``drifts`` are the fractions by
    which the workers' time and the cycle differ between runs. The interval of a short stage is at
    least as wide as that of the cycle."""
    names = [*before.stages, *(name for name in after.stages if name not in before.stages)]
    figures = {name: (both[0].stage(name), both[1].stage(name)) for name in names}
    count = sum(all(each.interval for each in pair) for pair in figures.values())
    found = {}
    for name, (one, other) in figures.items():
        mean_s = max(one.value or 0.0, other.value or 0.0)
        drift = drifts[name == Stage.WAIT]
        own = drift and DRIFT_OF_HAND_OVER if name in _HAND_OVER else drift
        found[name] = _difference(one, other, max(own * mean_s, drift * cycle_s), count)
    return found


def _difference(before: Estimate, after: Estimate, drift: float, count: int = 1) -> Difference:
    """Return one of ``count`` differences whose intervals hold jointly with 95 % confidence."""
    if before.value is None or after.value is None:
        return Difference(before.value, after.value)
    change = after.value - before.value
    if before.interval is None or after.interval is None:
        return Difference(before.value, after.value, change)
    wider = _quantile(count) / _quantile(1)
    down = hypot(after.value - after.interval[0], before.interval[1] - before.value, drift)
    up = hypot(after.interval[1] - after.value, before.value - before.interval[0], drift)
    interval = change - wider * down, change + wider * up
    return Difference(before.value, after.value, change, interval, _shown(interval))


def _shown(interval: tuple[float, float]) -> Literal["more", "less", "none"]:
    if interval[0] > 0:
        return "more"
    return "less" if interval[1] < 0 else "none"


def _quantile(count: int) -> float:
    """Return the normal quantile for ``count`` joint 95 % intervals (Bonferroni)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(count, 1))


def _compared(profile: Profile, file: str, intervals: RunIntervals) -> Compared:
    return Compared(
        file=file,
        name=profile.name,
        created=profile.created,
        pipeprof=profile.environment.pipeprof,
        accelerator=profile.environment.accelerator,
        samples_per_s=profile.throughput.samples_per_s,
        samples_interval=profile.throughput.interval,
        starved_fraction=intervals.starved().value,
        verdict=profile.diagnosis.verdict,
        bottleneck=profile.diagnosis.bottleneck,
        measured_batches=profile.measured_batches,
        kept_batches=intervals.kept_batches,
    )
