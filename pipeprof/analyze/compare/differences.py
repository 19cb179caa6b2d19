"""Find how the settings and circumstances of two runs differ, and what limits their comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Literal

from pipeprof.analyze.profile.stage_times import BLOCKED, CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.wording.comparison import comparison
from pipeprof.model import Change, Difference, Profile

_LEAST_CONTENTION_CHANGE = 0.1
"""Run-queue shares of the build time that differ by at least this much are reported."""
_MOST_CPU_RATIO = 1.2
"""Largest ratio of CPU time per batch at which the workers' own load counts as equal."""
_SIZE_TOLERANCE = 0.01
"""Batches whose mean sizes differ by at most this fraction are of one size."""


def changes(before: Profile, after: Profile) -> tuple[Change, ...]:
    """Return what differs in the loader's settings, the data, the machine and the threshold."""
    found = [
        *_changed_fields("loader", before.config, after.config),
        *_changed_fields("data", before.source, after.source),
        *_changed_fields("machine", before.environment, after.environment),
        *_changed_readers(before.environment.readers, after.environment.readers),
    ]
    if before.cache.state != after.cache.state:
        found.append(Change("data", "cache", before.cache.state, after.cache.state))
    thresholds = before.diagnosis.threshold, after.diagnosis.threshold
    if thresholds[0] != thresholds[1]:
        found.append(Change("verdict", "threshold", *thresholds))
    return tuple(found)


def _changed_fields(
    of: Literal["loader", "data", "machine"], before: Any, after: Any
) -> Iterator[Change]:
    """Yield the fields of plain types whose values differ."""
    if before is None and after is None:
        return
    for field in fields(before if before is not None else after):
        values = getattr(before, field.name, None), getattr(after, field.name, None)
        plain = all(value is None or isinstance(value, (str, int, float)) for value in values)
        # profiles of earlier versions do not name the sampler
        known = field.name != "sampler" or None not in values
        if plain and known and values[0] != values[1]:
            yield Change(of, field.name, *values)


def _changed_readers(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> Iterator[Change]:
    """Yield the decoding libraries of which the version differs, or that only one run has."""
    if before is None or after is None:
        return
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Change("machine", name, before.get(name), after.get(name))


def contention_change(before: Profile, after: Profile) -> float:
    """Return how far the waiting for cores differs because of other processes. It is a difference
    of shares of the build time, 0..1. It is 0 where the workers themselves may be the reason: their
    number, the batch size or the CPU time of a batch differs."""
    same = before.config.num_workers == after.config.num_workers
    cpu_s = [_cpu_s(before), _cpu_s(after)]
    if not (same and one_size(before, after) and max(cpu_s) <= _MOST_CPU_RATIO * min(cpu_s)):
        return 0.0
    return abs(waiting_share(before) - waiting_share(after))


def _cpu_s(profile: Profile) -> float:
    resources = profile.resources
    return sum(resources[name].mean_s for name in (CPU, NATIVE) if name in resources)


def waiting_share(profile: Profile) -> float:
    """Return the share of waiting for a core in the build time, 0..1; 0 where not sampled."""
    return share_of_fetch(profile, RUN_QUEUE) or 0.0


def share_of_fetch(profile: Profile, name: str) -> float | None:
    """Return the share of `CPU`, `RUN_QUEUE` or `BLOCKED` in the build time, 0..1. It is ``None``
    where it was not sampled."""
    resources = profile.resources
    total_s = sum(resources[each].mean_s for each in (CPU, RUN_QUEUE, BLOCKED) if each in resources)
    if name not in resources or not total_s > 0:
        return None
    return min(1.0, max(0.0, resources[name].mean_s / total_s))


def batch_sizes(before: Profile, after: Profile) -> tuple[float, float]:
    """Return the mean samples in a batch of each run; 0 where nothing was measured."""
    return _batch_size(before), _batch_size(after)


def _batch_size(profile: Profile) -> float:
    rates = profile.throughput
    return rates.samples_per_s / rates.batches_per_s if rates.batches_per_s > 0 else 0.0


def one_size(before: Profile, after: Profile) -> bool:
    """Return whether both runs had batches of the same size, as far as it is known."""
    one, other = batch_sizes(before, after)
    return min(one, other) <= 0 or abs(one - other) <= _SIZE_TOLERANCE * max(one, other)


def unlike(
    before: Profile, after: Profile, found: tuple[Change, ...], step: Difference | None
) -> tuple[str, ...]:
    """Explain how the circumstances of the runs differ, other than in the loader's settings.
    ``found`` are their `changes`, ``step`` is the difference of the training step."""
    return tuple(comparison(code, figures) for code, figures in _unlike(before, after, found, step))


def _unlike(
    before: Profile, after: Profile, found: tuple[Change, ...], step: Difference | None
) -> Iterator[tuple[str, dict[str, object]]]:
    changed: dict[str, set[str]] = {"machine": set(), "data": set(), "verdict": set()}
    for change in found:
        changed.setdefault(change.of, set()).add(change.name)
    same_size = one_size(before, after)
    if "accelerator" in changed["machine"]:
        yield "accelerator", {}
    elif step is not None and step.shown in ("more", "less") and same_size:
        yield "step", {"before": step.before or 0.0, "after": step.after or 0.0}
    if changed["machine"] & {"platform", "cores_visible", "ram_bytes"}:
        yield "machine", {}
    elif changed["machine"] & {"cores", "ranks"}:
        yield "cores", {}
    elif contention_change(before, after) > _LEAST_CONTENTION_CHANGE:
        yield "busier", {"before": waiting_share(before), "after": waiting_share(after)}
    if changed["data"] & {"url", "format", "objects", "bytes"}:
        yield "data", {}
    if "cache" in changed["data"]:
        yield "cache", {"before": before.cache.state, "after": after.cache.state}
    if not same_size:
        yield "sizes", {}
    if "threshold" in changed["verdict"]:
        before_share, after_share = before.diagnosis.threshold, after.diagnosis.threshold
        yield "threshold", {"before": before_share, "after": after_share}
