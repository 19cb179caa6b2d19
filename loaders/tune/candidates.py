"""What may be faster than a setting, by the recording of the batches that it fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from statistics import fmean
from typing import Any

from pipeprof.analyze.assemble import recommend
from pipeprof.loaders.tune.search import Candidate
from pipeprof.model import Recommendation, Recording, TunedSetting

SETTINGS = tuple(each.name for each in fields(TunedSetting))


def propose(recording: Recording, own: TunedSetting, fixed: Collection[str]) -> Sequence[Candidate]:
    """Return what the recommendations of a profile lead to, most promising first.

    They keep to the cores of this rank and to the limits of RAM, shared memory and descriptors.

    Args:
        recording: Of the setting ``own``.
        own: The setting to change.
        fixed: Names of `TunedSetting` that must stay.
    """
    samples = fmean(recording.batches.samples or [0])
    found = []
    for each in recommend(recording):
        for setting in _applied(each, own):
            if all(getattr(setting, name) == getattr(own, name) for name in fixed):
                rate = each.predicted_samples_per_s
                found.append(Candidate(setting, rate / samples if rate and samples else None))
    return found


def with_values(setting: TunedSetting, values: Mapping[str, Any]) -> TunedSetting:
    """Return ``setting`` with other ``values``. What torch refuses with them is left out."""
    changed = replace(setting, **values)
    prefetch = (changed.prefetch_factor or 2) if changed.num_workers else None
    return replace(changed, prefetch_factor=prefetch)


def _applied(change: Recommendation, setting: TunedSetting) -> Iterator[TunedSetting]:
    if change.setting == "num_workers" and change.proposed.isdigit():
        yield with_values(setting, {"num_workers": int(change.proposed)})
    elif change.setting == "prefetch_factor":
        yield replace(setting, prefetch_factor=int(change.proposed))
    elif change.setting == "pin_memory":
        yield replace(setting, pin_memory=change.proposed == "True")
