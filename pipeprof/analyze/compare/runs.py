"""One run held against another: is it faster, where did the time go, and do the data show it.

The difference of two means has an interval that is made of theirs (MOVER: Zou & Donner 2008). That
tells by how much two runs differ, not why: the same setting, run twice, gives no equal figures
either. So every interval is widened by what that is known to be, and by what the two runs drifted
while they were measured (`pipeprof.analyze.profile.drift`).
"""

from __future__ import annotations

from math import hypot
from statistics import NormalDist
from typing import Final, Literal

from pipeprof.analyze.compare.differences import (
    batch_sizes,
    busier,
    changes,
    one_size,
    share_of_fetch,
    unlike,
)
from pipeprof.analyze.compare.headline import headline
from pipeprof.analyze.compare.ratios import difference, ratio
from pipeprof.analyze.compare.run_intervals import Estimate, Spans
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

_HANDING: Final = (Stage.TRANSFER, Stage.SERIALISE, Stage.PIPE, Stage.UNPICKLE, Stage.PIN,
                   Stage.REORDER, Stage.READY)  # fmt: skip
"""Stages that are of that kind, or are whatever the others leave."""


def two_runs(
    before: Profile, after: Profile, files: tuple[str, str], drift: float | None = None
) -> TwoRuns:
    """``files``: where each profile lies, to name it by. ``drift``: by so much, 0..1, two runs of
    one setting differ by themselves; ``None``: as is known of others."""
    per: Literal["batch", "sample"] = "batch" if one_size(before, after) else "sample"
    sizes = batch_sizes(before, after) if per == "sample" else (1.0, 1.0)
    both = Spans(before, 1 / sizes[0]), Spans(after, 1 / sizes[1])
    alone = drift
    if drift is None or alone is None:
        drifted = both[0].drift, both[1].drift
        alone = hypot(_made(before, after), between(*drifted))
        drift = between_runs(before, after, drifted)
    turn_s = max(each.turn_s for each in both)
    speed = _speed(before, after, both, drift)
    # as much longer as a turn takes, the accelerator waits
    busy = 1 - min(max(0.0, before.diagnosis.starved_fraction, after.diagnosis.starved_fraction), 1)
    starved = _difference(both[0].starved(), both[1].starved(), drift * busy)
    stages = _stages(before, after, both, (alone, drift), turn_s)
    found = changes(before, after)
    return TwoRuns(
        before=_compared(before, files[0], both[0]),
        after=_compared(after, files[1], both[1]),
        headline=headline(before, after, speed, starved, stages, per),
        speed=speed,
        starved=starved,
        stall=_difference(both[0].stall(), both[1].stall(), drift * turn_s),
        stages=stages,
        per=per,
        changes=found,
        unlike=unlike(before, after, found, stages.get(str(Stage.STEP))),
        between_runs=drift,
    )


def between_runs(
    before: Profile, after: Profile, drifted: tuple[Drift | None, Drift | None] = (None, None)
) -> float:
    """What the throughput of the same setting, run again, may differ by: at least what is known of
    others, and as much more as these two drifted. Loaders that both feed their accelerator hide
    what their workers take."""
    fed = before.diagnosis.verdict == after.diagnosis.verdict == "fed"
    least = DRIFT_OF_WAITING if fed else _made(before, after)
    if None in drifted:
        least += DRIFT_OF_HAND_OVER * max(_handed(before), _handed(after))
    return hypot(least, between(*drifted))


def _made(before: Profile, after: Profile) -> float:
    """And what workers take for a batch, at least: also by what others have of the cores."""
    computing = max(_computing(before), _computing(after))
    return (
        DRIFT_OF_WAITING
        + (DRIFT_OF_COMPUTING - DRIFT_OF_WAITING) * computing
        + busier(before, after)
    )


def _handed(profile: Profile) -> float:
    """0..1 of the time: the accelerator waited for what was made already."""
    stalls = (profile.blame.get(str(name), 0.0) for name in (Stage.TRANSFER, Stage.PIN, MAIN))
    share = sum(stalls) / profile.wall_s if profile.wall_s > 0 else 0.0
    return min(1.0, max(0.0, share))


def _computing(profile: Profile) -> float:
    """0..1 of the time to make a batch; 1 where it was not looked at."""
    blocked = share_of_fetch(profile, BLOCKED)
    return 1.0 if blocked is None else 1 - blocked


def _speed(before: Profile, after: Profile, both: tuple[Spans, Spans], drift: float) -> Speed:
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
    both: tuple[Spans, Spans],
    drifts: tuple[float, float],
    turn_s: float,
) -> dict[str, Difference]:
    """Of all stages that either run has. What is little of a turn is no more sure than the
    turn. ``drifts``: of what workers take, of the whole turn."""
    names = [*before.stages, *(name for name in after.stages if name not in before.stages)]
    figures = {name: (both[0].stage(name), both[1].stage(name)) for name in names}
    at_once = sum(all(each.interval for each in pair) for pair in figures.values())
    found = {}
    for name, (one, other) in figures.items():
        mean_s = max(one.value or 0.0, other.value or 0.0)
        drift = drifts[name == Stage.WAIT]
        own = drift and DRIFT_OF_HAND_OVER if name in _HANDING else drift
        found[name] = _difference(one, other, max(own * mean_s, drift * turn_s), at_once)
    return found


def _difference(before: Estimate, after: Estimate, drift: float, at_once: int = 1) -> Difference:
    """``at_once``: of so many, whose intervals are to hold together."""
    if before.value is None or after.value is None:
        return Difference(before.value, after.value)
    change = after.value - before.value
    if before.interval is None or after.interval is None:
        return Difference(before.value, after.value, change)
    wider = _quantile(at_once) / _quantile(1)
    down = hypot(after.value - after.interval[0], before.interval[1] - before.value, drift)
    up = hypot(after.interval[1] - after.value, before.value - before.interval[0], drift)
    interval = change - wider * down, change + wider * up
    return Difference(before.value, after.value, change, interval, _shown(interval))


def _shown(interval: tuple[float, float]) -> Literal["more", "less", "none"]:
    if interval[0] > 0:
        return "more"
    return "less" if interval[1] < 0 else "none"


def _quantile(at_once: int) -> float:
    """Of the normal distribution, for 95 % of ``at_once`` intervals together (Bonferroni)."""
    return NormalDist().inv_cdf(1 - 0.025 / max(at_once, 1))


def _compared(profile: Profile, file: str, spans: Spans) -> Compared:
    return Compared(
        file=file,
        name=profile.name,
        created=profile.created,
        pipeprof=profile.environment.pipeprof,
        accelerator=profile.environment.accelerator,
        samples_per_s=profile.throughput.samples_per_s,
        samples_interval=profile.throughput.interval,
        starved_fraction=profile.diagnosis.starved_fraction,
        verdict=profile.diagnosis.verdict,
        bottleneck=profile.diagnosis.bottleneck,
        measured_batches=profile.measured_batches,
        kept_batches=spans.kept_batches,
    )
