"""Compute the gain from converting a data set, or from another reader: each copy of its sample, by
each reader, against the original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    variants = [
        _variant(best, result, first, copies, found.sample, drift)
        for url in dict.fromkeys(trial.url for trial in trials)
        if (best := _best(trials, url)) is not None and best != baseline
    ]
    as_it_is = [each for each in variants if each.copy is None]
    by_storage: dict[str, list[_Variant]] = {}
    for each in variants:
        if each.copy is not None:
            by_storage.setdefault(each.copy.storage, list(as_it_is)).append(each)
    return _without_deleted(advice, trials, found), replace(
        found,
        baseline=baseline,
        gains=tuple(each.gain for each in variants),
        advice={storage: _advise(own, first) for storage, own in by_storage.items()},
        layout=tuple(_layouts(variants, drift)),
    )


@dataclass(frozen=True)
class _Variant:
    """A copy, or the original data, by a reader, at its best setting."""

    copy: Copy | None
    """``None``: the original data."""
    trial: Trial
    gain: Gain

    @property
    def name(self) -> str:
        return self.copy.name + self.trial.by_reader if self.copy else _as_it_is(self.trial)


def _as_it_is(trial: Trial) -> str:
    return f"{trial.format} as it is{trial.by_reader}"


def _without_deleted(
    advice: Sequence[SweepAdvice], trials: Sequence[Trial], conversion: Conversion
) -> tuple[SweepAdvice, ...]:
    """Remove the code that would read copies that are deleted after the sweep."""
    deleted = set() if conversion.kept else {copy.url for copy in conversion.copies}
    return tuple(
        replace(one, recommendation=replace(one.recommendation, code=None))
        if trials[one.best_trial].data_url in deleted and one.recommendation is not None
        else one
        for one in advice
    )


def _without_control(result: SweepResult) -> tuple[tuple[Trial, ...], int | None]:
    """Split off the control, which reads the original data again. It is the last trial."""
    control = result.conversion.control if result.conversion else None
    if control is None or control >= len(result.trials):
        return result.trials, None
    return result.trials[:control], control


def _best(trials: Sequence[Trial], url: str) -> int | None:
    own = [index for index, trial in enumerate(trials) if trial.url == url]
    return best_trial(trials, own) if own else None


def _variant(
    index: int,
    result: SweepResult,
    first: Trial,
    copies: Mapping[str, Copy],
    sample: Sample,
    drift: float,
) -> _Variant:
    trial = result.trials[index]
    copy, (speed, (low, high)) = copies.get(trial.data_url), ratio(trial, first, drift)
    left = [each.at_most for each in result.untried if each.url == trial.url and each.may_be_faster]
    interval = low, max([high, *(each / max(first.samples_per_s, 1e-9) for each in left)])
    gain = Gain(
        url=trial.url,
        trial=index,
        speed=speed,
        speed_interval=interval,
        difference=difference(speed, interval),
        storage=_storage(copy, sample) if copy else 1.0,
        read=_multiple(trial.bytes_per_sample, first.bytes_per_sample),
        cpu=_multiple(trial.cpu_s_per_sample, first.cpu_s_per_sample),
        searched=not left,
    )
    return _Variant(copy, trial, gain)


def _storage(copy: Copy, sample: Sample) -> float:
    """Return the bytes of a sample as a multiple of those in the original data."""
    own_bytes = copy.bytes / max(copy.rows, 1)
    return own_bytes / max(sample.storage_bytes / max(sample.rows, 1), 1e-9)


def _multiple(of: float | None, base: float | None) -> float | None:
    return of / base if of is not None and base else None


def _advise(variants: Sequence[_Variant], first: Trial) -> str:
    """Advise on the cheapest of the fastest variants, or of those as fast as the original."""
    faster, equal = (
        [each for each in variants if each.gain.difference == found and each.gain.searched]
        for found in ("faster", "none")
    )
    copies = [each for each in variants if each.copy is not None]
    if faster:
        chosen = _cheapest(faster)
        code = "convert" if chosen.copy else "reader"
    elif equal:
        code, chosen = "as-fast", min([each for each in equal if each.copy] or equal, key=_cost)
    elif all(each.gain.searched for each in copies):
        code, chosen = "keep", max(copies, key=lambda each: each.gain.speed)
    else:
        code, chosen = "out-of-reach", max(copies, key=lambda each: each.gain.speed_interval[1])
    fed = first.verdict == "fed"
    figures = {"name": chosen.name, "first": _as_it_is(first), "fed": fed}
    return conversion_advice(code, figures, chosen.gain)


def _cheapest(variants: Sequence[_Variant]) -> _Variant:
    """Return the cheapest of the variants that are as fast as the fastest."""
    fastest = max(variants, key=lambda each: each.gain.speed).trial
    near = [
        each for each in variants
        if each.trial.interval[1] >= fastest.interval[0]
        or each.trial.samples_per_s >= fastest.samples_per_s * (1 - EQUALLY_FAST)
    ]  # fmt: skip
    return min(near, key=_cost)


def _cost(variant: _Variant) -> tuple[bool, float]:
    """Return whether data must be converted, and then the bytes on storage."""
    return variant.copy is not None, variant.gain.storage


def _layouts(variants: Iterable[_Variant], drift: float) -> Iterable[str]:
    """Compare the sizes of row groups, and of files, where all else is equal."""
    for size, unit in (("row_group_bytes", "row groups"), ("shard_bytes", "files")):
        tried: dict[tuple[str, str], list[tuple[int, Trial]]] = {}
        for each in variants:
            count = getattr(each.copy, size, None)
            if each.copy is not None and count is not None and each.gain.searched:
                name = name_without_size(each.copy.name, count) + each.trial.by_reader
                tried.setdefault((each.copy.storage, name), []).append((count, each.trial))
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
