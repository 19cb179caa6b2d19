"""Compute the gain from converting a data set: each copy of its sample against the original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pipeprof.analyze.compare.ratios import difference, log_ratio, ratio
from pipeprof.analyze.sweep.recommend import best_trial, choose
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.analyze.wording.conversion import (
    conversion_advice,
    name_without_size,
    other_layout,
    same_layouts,
)
from pipeprof.model import Conversion, Copy, Gain, Sample, SweepAdvice, SweepResult, Trial


def evaluate(result: SweepResult) -> tuple[tuple[SweepAdvice, ...], Conversion | None]:
    """Return the advice for each data set, and the comparison of the copies with the original.
    Trials that have not run yet are left out."""
    found = result.conversion
    trials, control = _without_control(result)
    advice = choose(trials, result.spec)
    baseline = _best(trials, result.spec.urls[0])
    if found is None or found.sample is None or baseline is None:
        return advice, found
    first = trials[baseline]
    drift = log_ratio(result.trials[control], first) if control is not None else 0.0
    copies = {copy.url: copy for copy in found.copies}
    gains = tuple(
        _gain(copy, best, trials[best], first, found.sample, drift)
        for copy in found.copies
        if copy.skipped is None and (best := _best(trials, copy.url)) is not None
    )
    by_storage: dict[str, list[Gain]] = {}
    for gain in gains:
        by_storage.setdefault(copies[gain.url].storage, []).append(gain)
    return _without_deleted(advice, found), replace(
        found,
        baseline=baseline,
        control=control,
        gains=gains,
        advice={
            storage: _advise(own, copies, trials, first) for storage, own in by_storage.items()
        },
        layout=tuple(_layouts(gains, copies, trials, drift)),
    )


def _without_deleted(
    advice: Sequence[SweepAdvice], conversion: Conversion
) -> tuple[SweepAdvice, ...]:
    """Remove the code that would read copies that are deleted after the sweep."""
    deleted = set() if conversion.kept else {copy.url for copy in conversion.copies}
    return tuple(
        replace(one, recommendation=replace(one.recommendation, code=None))
        if one.url in deleted and one.recommendation is not None
        else one
        for one in advice
    )


def _without_control(result: SweepResult) -> tuple[tuple[Trial, ...], int | None]:
    """Split off the last planned trial, the control: it reads the original data again."""
    if len(result.trials) < result.planned:
        return result.trials, None
    return result.trials[:-1], len(result.trials) - 1


def _best(trials: Sequence[Trial], url: str) -> int | None:
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    return best_trial(trials, own) if own else None


def _gain(copy: Copy, index: int, trial: Trial, first: Trial, sample: Sample, drift: float) -> Gain:
    speed, interval = ratio(trial, first, drift)
    own_bytes = copy.bytes / max(copy.rows, 1)
    return Gain(
        url=copy.url,
        trial=index,
        speed=speed,
        speed_interval=interval,
        difference=difference(speed, interval),
        storage=own_bytes / max(sample.storage_bytes / max(sample.rows, 1), 1e-9),
        read=_multiple(trial.bytes_per_sample, first.bytes_per_sample),
        cpu=_multiple(trial.cpu_s_per_sample, first.cpu_s_per_sample),
    )


def _multiple(of: float | None, base: float | None) -> float | None:
    return of / base if of is not None and base else None


def _advise(
    gains: Sequence[Gain], copies: Mapping[str, Copy], trials: Sequence[Trial], first: Trial
) -> str:
    """Advise on the smallest of the fastest copies, or of those as fast as the original."""
    faster, equal = ([gain for gain in gains if gain.difference == each]
                     for each in ("faster", "none"))  # fmt: skip
    if faster:
        code, chosen = "convert", _smallest(faster, trials)
    elif equal:
        code, chosen = "as-fast", min(equal, key=_stored)
    else:
        code, chosen = "keep", max(gains, key=lambda gain: gain.speed)
    fed = first.verdict == "fed"
    figures = {"name": copies[chosen.url].name, "format": first.format, "fed": fed}
    return conversion_advice(code, figures, chosen)


def _smallest(gains: Sequence[Gain], trials: Sequence[Trial]) -> Gain:
    """Return the copy with the fewest bytes of those that are as fast as the fastest."""
    fastest = trials[max(gains, key=lambda gain: gain.speed).trial]
    near = [
        gain for gain in gains
        if trials[gain.trial].interval[1] >= fastest.interval[0]
        or trials[gain.trial].samples_per_s >= fastest.samples_per_s * (1 - EQUALLY_FAST)
    ]  # fmt: skip
    return min(near, key=_stored)


def _stored(gain: Gain) -> float:
    return gain.storage


def _layouts(
    gains: Iterable[Gain], copies: Mapping[str, Copy], trials: Sequence[Trial], drift: float
) -> Iterable[str]:
    """Compare the sizes of row groups, and of files, where all else is equal."""
    for size, unit in (("row_group_bytes", "row groups"), ("shard_bytes", "files")):
        tried: dict[tuple[str, str], list[tuple[int, Trial]]] = {}
        for gain in gains:
            copy, count = copies[gain.url], getattr(copies[gain.url], size)
            if count is not None:
                same = copy.storage, name_without_size(copy.name, count)
                tried.setdefault(same, []).append((count, trials[gain.trial]))
        for (storage, name), several in sorted(tried.items()):
            if len(several) > 1:
                several.sort(key=lambda one: one[0])
                yield _layout(several, drift, {"storage": storage, "name": name, "size": unit})


def _layout(tried: Sequence[tuple[int, Trial]], drift: float, named: Mapping[str, str]) -> str:
    most, fastest = max(tried, key=lambda one: one[1].samples_per_s)
    least, slowest = min(tried, key=lambda one: one[1].samples_per_s)
    speed, interval = ratio(fastest, slowest, drift)
    if difference(speed, interval) == "none":
        return same_layouts(named, [count for count, _ in tried])
    figures = {"speed": speed, "speed_interval": interval, "most": most, "least": least}
    return other_layout({**named, **figures})
