"""What was set and what stood around two runs: where they are not the same, and what that forbids
to compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Literal

from pipeprof.analyze.profile.stage_times import BLOCKED, CPU, NATIVE, RUN_QUEUE
from pipeprof.analyze.wording.comparison import comparison
from pipeprof.model import Change, Difference, Profile

_BUSIER = 0.1
"""Of the time to make a batch. Run-queue shares that differ by at least so much are reported."""
_AS_MUCH = 1.2
"""A batch that takes more times the CPU than before may itself be what cores are waited for."""
_ALIKE = 0.01
"""Batches whose mean sizes differ by less are of one size."""


def changes(before: Profile, after: Profile) -> tuple[Change, ...]:
    """Only what differs: the loader's settings, the data, the machine, the rule of the verdict."""
    found = [
        *_differing("loader", before.config, after.config),
        *_differing("data", before.source, after.source),
        *_differing("machine", before.environment, after.environment),
        *_readers(before.environment.readers, after.environment.readers),
    ]
    if before.cache.state != after.cache.state:
        found.append(Change("data", "cache", before.cache.state, after.cache.state))
    limits = (before.diagnosis.threshold, after.diagnosis.threshold)
    if limits[0] != limits[1]:
        found.append(Change("verdict", "threshold", *limits))
    return tuple(found)


def _differing(
    of: Literal["loader", "data", "machine"], before: Any, after: Any
) -> Iterator[Change]:
    """Field by field, but for those that are made of fields themselves."""
    if before is None and after is None:
        return
    for field in fields(before if before is not None else after):
        values = getattr(before, field.name, None), getattr(after, field.name, None)
        plain = all(value is None or isinstance(value, (str, int, float)) for value in values)
        if plain and values[0] != values[1]:
            yield Change(of, field.name, *values)


def _readers(before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Iterator[Change]:
    """Libraries that decode data, of another version or only in one of the two."""
    if before is None or after is None:
        return
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Change("machine", name, before.get(name), after.get(name))


def busier(before: Profile, after: Profile) -> float:
    """By how much more of the time to make a batch workers waited for a core in one of the two,
    0..1, where that is the doing of others: of as many workers, whose batches take as much CPU."""
    same = before.config.num_workers == after.config.num_workers
    took = [_cpu_s(before), _cpu_s(after)]
    if not (same and one_size(before, after) and max(took) <= _AS_MUCH * min(took)):
        return 0.0
    return abs(waited_for_cores(before) - waited_for_cores(after))


def _cpu_s(profile: Profile) -> float:
    took = profile.resources
    return sum(took[name].mean_s for name in (CPU, NATIVE) if name in took)


def waited_for_cores(profile: Profile) -> float:
    """0..1 of the time to make a batch; 0 where it was not looked at."""
    return share_of_fetch(profile, RUN_QUEUE) or 0.0


def share_of_fetch(profile: Profile, name: str) -> float | None:
    """0..1 of the time to make a batch that was of this kind: `CPU`, `RUN_QUEUE` or `BLOCKED`.
    ``None``: it was not looked at."""
    took = profile.resources
    whole_s = sum(took[each].mean_s for each in (CPU, RUN_QUEUE, BLOCKED) if each in took)
    if name not in took or not whole_s > 0:
        return None
    return min(1.0, max(0.0, took[name].mean_s / whole_s))


def batch_sizes(before: Profile, after: Profile) -> tuple[float, float]:
    """Samples in a batch on average; 0 where nothing was measured."""
    return _batch_size(before), _batch_size(after)


def _batch_size(profile: Profile) -> float:
    rates = profile.throughput
    return rates.samples_per_s / rates.batches_per_s if rates.batches_per_s > 0 else 0.0


def one_size(before: Profile, after: Profile) -> bool:
    """Whether the two ran with batches of as many samples."""
    one, other = batch_sizes(before, after)
    return min(one, other) <= 0 or abs(one - other) <= _ALIKE * max(one, other)


def unlike(
    before: Profile, after: Profile, found: tuple[Change, ...], step: Difference | None
) -> tuple[str, ...]:
    """Why the two are not alike beside what a user of a loader sets. ``step``: of the training
    step."""
    return tuple(comparison(code, figures) for code, figures in _unlike(before, after, found, step))


def _unlike(
    before: Profile, after: Profile, found: tuple[Change, ...], step: Difference | None
) -> Iterator[tuple[str, dict[str, object]]]:
    changed: dict[str, set[str]] = {"machine": set(), "data": set(), "verdict": set()}
    for change in found:
        changed.setdefault(change.of, set()).add(change.name)
    alike = one_size(before, after)
    if "accelerator" in changed["machine"]:
        yield "accelerator", {}
    elif step is not None and step.shown in ("more", "less") and alike:
        yield "step", {"before": step.before or 0.0, "after": step.after or 0.0}
    if changed["machine"] & {"platform", "cores_visible", "ram_bytes"}:
        yield "machine", {}
    elif changed["machine"] & {"cores", "ranks"}:
        yield "cores", {}
    elif busier(before, after) > _BUSIER:
        yield "busier", {"before": waited_for_cores(before), "after": waited_for_cores(after)}
    if changed["data"] & {"url", "format", "objects", "bytes"}:
        yield "data", {}
    if "cache" in changed["data"]:
        yield "cache", {"before": before.cache.state, "after": after.cache.state}
    if not alike:
        yield "sizes", {}
    if "threshold" in changed["verdict"]:
        rules = before.diagnosis.threshold, after.diagnosis.threshold
        yield "threshold", {"before": rules[0], "after": rules[1]}
