"""Measure whether a storage is limited by latency or bandwidth, where a trial cannot show it.

A few requests are sent one at a time while nothing else reads. Some are small and some as large
as the trial's, for the same objects and by the same client.
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
"""How long requests of each size are repeated."""
_MAX_REQUESTS = 200
"""The most requests of each size."""
_MIN_REQUESTS = 3
_SMALL_BYTES = 4096
_LEAST_SIZE_RATIO = 16
"""A large request has at least so many times the bytes of a small one."""


def disambiguate(
    profile: Profile, recording: Recording, dataset: FileDataset, spec: SweepSpec
) -> tuple[Profile, Recording]:
    """Return the profile and recording, with lone requests measured where these may find the cause.
    The trial's workers must have ended. The requests take some 1.5 s."""
    requests, local = profile.requests, is_local(dataset.objects[0].url)
    if profile.diagnosis.bottleneck != "read" or requests is None:
        return profile, recording
    if (requests.client_share or 0.0) >= BUSY:
        return profile, recording
    if local and spec.cache != "cold":
        return profile, recording  # the trial has left the data in memory
    try:
        lone = lone_requests(dataset, int(requests.size.p50), forget=local)
    except StorageError:
        return profile, recording
    if lone is None:
        return profile, recording
    recording = replace(recording, lone_requests=lone)
    return assemble(recording, spec.threshold), recording


def lone_requests(dataset: FileDataset, large: int, forget: bool) -> LoneRequests | None:
    """Measure small requests and those of ``large`` bytes; None when the objects are too small.
    ``forget`` evicts the objects from the page cache before. Raises `StorageError`."""
    large = max(large, _LEAST_SIZE_RATIO * _SMALL_BYTES)
    objects = [item for item in dataset.objects if item.size >= 2 * large]
    if not objects:
        return None
    if forget:
        evict([item.path for item in objects])
    small_s = _time_requests(dataset, objects, _SMALL_BYTES, SMALL_S)
    large_s = _time_requests(dataset, objects, large, LARGE_S)
    return LoneRequests(_SMALL_BYTES, fmean(small_s), large, fmean(large_s), len(large_s))


def _time_requests(
    dataset: FileDataset, objects: list[ObjectInfo], size: int, budget_s: float
) -> list[float]:
    """Return the seconds of each request at random offsets, for about ``budget_s``. The first
    request is left out, because it opens connections."""
    random = Random(size)
    times: list[float] = []
    began = end = perf_counter()
    while len(times) <= _MIN_REQUESTS or (end - began < budget_s and len(times) < _MAX_REQUESTS):
        item = random.choice(objects)
        offset = random.randrange((item.size - size) // _SMALL_BYTES) * _SMALL_BYTES
        start = perf_counter()
        dataset.store.read(item, [(offset, size)])
        end = perf_counter()
        times.append(end - start)
    return times[1:]
