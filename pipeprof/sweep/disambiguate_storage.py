"""When a trial cannot tell the storage's latency from its bandwidth: a few requests that do.

They are made one at a time while nothing else reads, small ones and ones as large as the trial's,
of the same objects, through the same client.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from statistics import fmean
from time import perf_counter

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.storage_bottleneck import BUSY
from pipeprof.errors import StorageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.model import LoneRequests, Profile, Recording, SweepSpec
from pipeprof.storage import ObjectInfo
from pipeprof.storage.page_cache import evict
from pipeprof.storage.urls import is_local

SMALL_S, LARGE_S = 0.3, 1.2
_MOST = 200
"""Requests of each size."""
_FEWEST = 3
_SMALL = 4096
_LARGER = 16
"""Times as large, at least."""


def disambiguated(
    profile: Profile, recording: Recording, dataset: FileDataset, spec: SweepSpec
) -> tuple[Profile, Recording]:
    """The same, or with the cause found, some 1.5 seconds later. The trial's workers are gone."""
    requests, local = profile.requests, is_local(dataset.objects[0].url)
    if profile.diagnosis.bottleneck != "read" or requests is None:
        return profile, recording
    if (requests.client_share or 0.0) >= BUSY:
        return profile, recording
    if local and spec.cache != "cold":
        return profile, recording  # it would find what the trial has left in memory
    try:
        lone = lone_requests(dataset, int(requests.size.p50), forget=local)
    except StorageError:
        return profile, recording
    if lone is None:
        return profile, recording
    recording = replace(recording, lone_requests=lone)
    return assemble(recording, spec.threshold), recording


def lone_requests(dataset: FileDataset, large: int, forget: bool) -> LoneRequests | None:
    """``None`` when the objects are too small to tell. ``forget``: what the page cache holds of
    them. Raises `StorageError`."""
    large = max(large, _LARGER * _SMALL)
    objects = [item for item in dataset.objects if item.size >= 2 * large]
    if not objects:
        return None
    if forget:
        evict([item.path for item in objects])
    small = _timed(dataset, objects, _SMALL, SMALL_S)
    took = _timed(dataset, objects, large, LARGE_S)
    return LoneRequests(_SMALL, fmean(small), large, fmean(took), len(took))


def _timed(
    dataset: FileDataset, objects: list[ObjectInfo], size: int, budget_s: float
) -> list[float]:
    """Seconds of each request, at random places; without the first, which opens connections."""
    random = Random(size)
    took: list[float] = []
    began = end = perf_counter()
    while len(took) <= _FEWEST or (end - began < budget_s and len(took) < _MOST):
        item = random.choice(objects)
        offset = random.randrange((item.size - size) // _SMALL) * _SMALL
        start = perf_counter()
        dataset.store.read(item, [(offset, size)])
        end = perf_counter()
        took.append(end - start)
    return took[1:]
