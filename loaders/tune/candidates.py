"""What may be faster than a setting, by the recording of the batches that it fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any

from pipeprof.analyze.assemble import what_to_try
from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.thresholds import EQUALLY_FAST
from pipeprof.loaders.tune.search import Candidate
from pipeprof.model import ReadOptions, Recommendation, Recording, TunedSetting

SETTINGS = tuple(each.name for each in fields(TunedSetting))

_MOST_QUEUED, _LARGEST_REQUEST, _LARGEST_BLOCK = 32, 2**23, 2**26
"""Beyond these, neither more requests at a time nor larger ones are tried. Sizes in bytes."""
_DEEPER = 2
"""So many settings with more prefetched batches are explored."""


@dataclass(frozen=True)
class Bounds:
    """What limits the settings of a loader."""

    fixed: frozenset[str] = frozenset()
    """Names of `TunedSetting` that must stay."""
    most_workers: int | None = None
    """More of them would have nothing to do."""
    local: bool = True
    """Whether local files are read, where `open_dataset` reads."""
    larger_blocks: bool = False
    """Whether `open_dataset` may read larger blocks without another order of rows."""

    def allow(self, setting: TunedSetting, own: TunedSetting) -> bool:
        """Return whether ``own`` may become ``setting``."""
        most = self.most_workers
        stays = all(
            getattr(setting, name) == getattr(own, name) for name in self.fixed & {*SETTINGS}
        )
        return stays and (most is None or setting.num_workers <= most)


def propose(recording: Recording, own: TunedSetting, bounds: Bounds) -> Sequence[Candidate]:
    """Return what may be faster than ``own``, most promising first.

    They keep to the cores of this rank and to the limits of RAM, shared memory and descriptors.
    One without workers is the user's choice. The data set would run in the training process, with
    its random numbers, and later workers would share what it opens there.

    Args:
        recording: Of the setting ``own``.
        own: The setting to change.
        bounds: Limits of other settings.
    """
    tried = what_to_try(recording)
    samples = fmean(recording.batches.samples or [0])
    advised = [
        Candidate(
            setting,
            rate / samples if (rate := each.predicted_samples_per_s) else None,
            tried.batches_per_s,
            is_users_choice=not setting.num_workers and own.num_workers > 0,
        )
        for each in tried.recommendations
        for setting in _applied(each, own, bounds)
        if each.setting != "num_workers" or each.proposed == "0" or not tried.simulated
    ]
    simulated = [
        Candidate(with_values(own, {"num_workers": each.num_workers,
                                    "prefetch_factor": each.prefetch_factor}),
                  rate, tried.batches_per_s)
        for each, rate in _cheapest_first(tried.simulated)
    ]  # fmt: skip
    found = [*advised, *simulated, *_explored(simulated, own)]
    return [each for each in found if bounds.allow(each.setting, own)]


def _explored(simulated: Sequence[Candidate], own: TunedSetting) -> Iterator[Candidate]:
    """Yield twice and half the workers, and more prefetched batches. Such a change may bring what
    the simulation does not see: computing workers share the cores, and where batches cost little,
    handing them over depends on who is awake."""
    if not own.num_workers:
        return
    for workers in (2 * own.num_workers, own.num_workers // 2):
        near = [each for each in simulated if each.setting.num_workers == workers]
        yield from (replace(each, explores=True) for each in near[:1])
    deeper = [each for each in simulated if each.setting.num_workers == own.num_workers
              and _prefetch(each.setting) > _prefetch(own)]  # fmt: skip
    for each in sorted(deeper, key=lambda each: _prefetch(each.setting))[:_DEEPER]:
        yield replace(each, explores=True)


def _prefetch(setting: TunedSetting) -> int:
    return setting.prefetch_factor or 0


def _cheapest_first(rates: Mapping[Setting, float]) -> Sequence[tuple[Setting, float]]:
    """Return settings by their rates, fastest first. Those that are as fast as the fastest are in
    the order of what they take: workers, and prefetched batches."""
    equal = max(rates.values(), default=0.0) / (1 + EQUALLY_FAST)
    return sorted(
        rates.items(),
        key=lambda each: (
            -min(each[1], equal), each[0].num_workers, each[0].in_flight
        ),
    )  # fmt: skip


def with_values(setting: TunedSetting, values: Mapping[str, Any]) -> TunedSetting:
    """Return ``setting`` with other ``values``. What torch refuses with them is left out."""
    changed = replace(setting, **values)
    if not changed.num_workers:
        return replace(changed, prefetch_factor=None, threads=None)
    return replace(changed, prefetch_factor=changed.prefetch_factor or 2)


def _applied(
    change: Recommendation, setting: TunedSetting, bounds: Bounds
) -> Iterator[TunedSetting]:
    if change.setting == "num_workers" and change.proposed.isdigit():
        yield with_values(setting, {"num_workers": int(change.proposed)})
    elif change.setting == "prefetch_factor":
        yield replace(setting, prefetch_factor=int(change.proposed))
    elif change.setting == "in_order":
        yield replace(setting, in_order=change.proposed == "True")
    elif "pin_memory" in change.setting:  # also with what only the training loop can change
        yield replace(setting, pin_memory=change.proposed.startswith("True"))
    elif change.setting == "worker_init_fn":
        yield replace(setting, threads=1)
    elif change.setting == "concurrent requests" and setting.read:
        for read in _more_requests(setting.read, bounds):
            yield replace(setting, read=read)


def _more_requests(read: ReadOptions, bounds: Bounds) -> Iterator[ReadOptions]:
    """Yield options with more requests at a time, and with larger ones. Rows and their order stay
    the same."""
    if not read.read_ahead:
        yield replace(read, read_ahead=True)
    if bounds.local and read.queue_depth < _MOST_QUEUED:
        yield replace(read, queue_depth=4 * read.queue_depth)
    if bounds.local and read.request_bytes < _LARGEST_REQUEST:
        yield replace(read, request_bytes=4 * read.request_bytes)
    if bounds.larger_blocks and read.block_bytes < _LARGEST_BLOCK:
        yield replace(read, block_bytes=4 * read.block_bytes)
