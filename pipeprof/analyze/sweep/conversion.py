"""What converting a data set would bring: each copy of its sample against the data as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from pipeprof.analyze.compare.ratios import difference, log_ratio, ratio
from pipeprof.analyze.sweep.recommend import best_trial, choose
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.model import Conversion, Copy, Gain, Sample, SweepAdvice, SweepResult, Trial
from pipeprof.units import format_binary, format_count

_SHOWN = "difference that this data can show"


def weigh(result: SweepResult) -> tuple[tuple[SweepAdvice, ...], Conversion | None]:
    """What the trials so far tell: of each data set by itself, and of the copies against the data
    as it is."""
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
    return _to_paste(advice, found), replace(
        found,
        baseline=baseline,
        control=control,
        gains=gains,
        advice={
            storage: _advise(own, copies, trials, first) for storage, own in by_storage.items()
        },
        layout=tuple(_layouts(gains, copies, trials, drift)),
    )


def _to_paste(advice: Sequence[SweepAdvice], conversion: Conversion) -> tuple[SweepAdvice, ...]:
    """Code only for what is still there when it is pasted."""
    gone = set() if conversion.kept else {copy.url for copy in conversion.copies}
    return tuple(
        replace(one, recommendation=replace(one.recommendation, code=None))
        if one.url in gone and one.recommendation is not None
        else one
        for one in advice
    )


def _without_control(result: SweepResult) -> tuple[tuple[Trial, ...], int | None]:
    """The last of all trials is the data as it is, once more."""
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
    now = f"{first.format} as it is"
    better = [gain for gain in gains if gain.difference == "faster"]
    if better:
        chosen = _leanest(better, trials)
        low, high = chosen.speed_interval
        return (
            f"{copies[chosen.url].name} gives {_times(chosen.speed)} the samples/s of {now} "
            f"(95 %: {_times(low)} to {_times(high)}), and {_takes(chosen)}."
        )
    fed = f"{now} feeds the accelerator already" if first.verdict == "fed" else ""
    equal = [gain for gain in gains if gain.difference == "none"]
    if not equal:
        fastest = max(gains, key=lambda gain: gain.speed)
        return (
            f"keep {now}: what was tried is slower; the fastest, {copies[fastest.url].name}, gives "
            f"{_times(fastest.speed)} its samples/s and {_takes(fastest)}."
        )
    leanest = min(equal, key=lambda gain: gain.storage)
    return (
        (f"{fed}, and " if fed else "")
        + f"no format is faster than {'it' if fed else now} by any {_SHOWN}; "
        + f"{copies[leanest.url].name} {_takes(leanest)}."
    )


def _leanest(gains: Sequence[Gain], trials: Sequence[Trial]) -> Gain:
    """Of those that cannot be told from the fastest, the one with the fewest bytes on storage."""
    fastest = trials[max(gains, key=lambda gain: gain.speed).trial]
    near = [
        gain for gain in gains
        if trials[gain.trial].interval[1] >= fastest.interval[0]
        or trials[gain.trial].samples_per_s >= fastest.samples_per_s * (1 - EQUALLY_FAST)
    ]  # fmt: skip
    return min(near, key=lambda gain: gain.storage)


def _takes(gain: Gain) -> str:
    cpu = f" and {_times(gain.cpu)} the CPU a sample" if gain.cpu is not None else ""
    return f"takes {_times(gain.storage)} the bytes on storage{cpu}"


def _times(ratio: float) -> str:
    return f"{format_count(ratio)}×"


def _layouts(
    gains: Iterable[Gain], copies: Mapping[str, Copy], trials: Sequence[Trial], drift: float
) -> Iterable[str]:
    """What row groups and file sizes brought, all else equal."""
    for size, what in (("row_group_bytes", "row groups"), ("shard_bytes", "files")):
        alike = sorted(
            (
                (_others(copies[gain.url], size), getattr(copies[gain.url], size), gain)
                for gain in gains
                if getattr(copies[gain.url], size) is not None
            ),
            key=lambda found: (found[0], found[1]),
        )
        for (storage, name), several in groupby(alike, key=lambda found: found[0]):
            tried = [(count, trials[gain.trial]) for _, count, gain in several]
            if len(tried) > 1:
                yield f"{name} on {storage}: {_compare(tried, what, drift)}."


def _others(copy: Copy, size: str) -> tuple[str, str]:
    """Storage, and the copy's name but for this size."""
    own = format_binary(getattr(copy, size))
    words = [word for word in copy.name.split(", ") if not word.startswith(f"{own} ")]
    return copy.storage, ", ".join(words)


def _compare(tried: Sequence[tuple[int, Trial]], what: str, drift: float) -> str:
    most, fastest = max(tried, key=lambda one: one[1].samples_per_s)
    least, slowest = min(tried, key=lambda one: one[1].samples_per_s)
    speed, interval = ratio(fastest, slowest, drift)
    if difference(speed, interval) == "none":
        sizes = " or ".join(format_binary(count) for count, _ in tried)
        return f"{what} of {sizes} make no {_SHOWN}"
    low, high = interval
    return (
        f"{what} of {format_binary(most)} give {_times(speed)} the samples/s of "
        f"{format_binary(least)} (95 %: {_times(low)} to {_times(high)})"
    )
