"""Measure what a cache on a local disk is worth to a data set, at its best setting."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import ceil, inf
from pathlib import Path
from time import perf_counter
from typing import Any

from torch.utils.data import DataLoader

from pipeprof.analyze.sweep.local_cache import CacheRound, evaluate_cache
from pipeprof.errors import StorageError
from pipeprof.loaders.dataset.dataset import FileDataset
from pipeprof.loaders.instrument.batch_size import count_samples
from pipeprof.model import CachePass, LocalCache, SweepSpec, Trial
from pipeprof.storage.local_cache import cached_files, unusable
from pipeprof.storage.page_cache import evict
from pipeprof.sweep.consumer import make_consumer
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.trial import with_loader
from pipeprof.units import format_bytes

_ROUNDS = 4
"""How often each pass is measured; the interval of fewer would be too wide."""
_USED_OF_DISK = 0.9
"""The largest share of what is free on the disk that the cache may take."""
_FULL = (1 - _USED_OF_DISK) / 2
"""Below this share of what was free at first, others have filled the disk, and not all was kept."""

Loader = DataLoader[Any]
Step = Callable[[Any], Any]


def measure_local_cache(
    spec: SweepSpec,
    setting: TrialSetting,
    trial: Trial,
    storage_options: Mapping[str, Any] | None = None,
) -> LocalCache:
    """Read some splits without a cache, while one is filled, and from the filled one.

    The cache is a new folder in ``spec.local_cache``, which is removed at the end. A pass reads
    whole splits: the first batches of a split come from its first block, all at once.

    Args:
        spec: What the sweep tries, and the folder.
        setting: The setting to measure with.
        trial: The trial of that setting, by which the length of a pass is chosen.
        storage_options: The storage options of fsspec.

    Raises:
        OutputError: The folder cannot be made.
        StorageError: It has too little room, at first or in the end.
    """
    assert spec.local_cache is not None
    step = make_consumer(spec, setting.batch_size).step
    with _new_folder(spec.local_cache) as folder:
        dataset = with_loader(spec, setting, storage_options, lambda _, opened: opened)
        assert dataset is not None
        free = shutil.disk_usage(folder).free
        limit = inf if spec.local_cache_bytes is None else spec.local_cache_bytes
        room = min(free * _USED_OF_DISK, limit)
        splits = range(_splits_of_a_pass(spec, setting, trial, dataset, room))
        read = replace(spec.read, local_cache=folder, local_cache_bytes=int(room))
        cached = replace(spec, read=read)

        def measure(plain: Loader, caching: Loader) -> list[CacheRound]:
            for loader in (plain, caching):
                _epoch(loader, step)  # workers start, and connect
            found = [_round(plain, caching, step, folder, number) for number in range(_ROUNDS)]
            if shutil.disk_usage(folder).free < _FULL * free:
                raise StorageError(f"the disk of {spec.local_cache} filled up meanwhile.")
            return found

        def with_plain(plain: Loader, _: object) -> list[CacheRound]:
            return with_loader(
                cached, setting, storage_options, lambda caching, _: measure(plain, caching),
                splits, by_epochs=True,
            )  # fmt: skip

        rounds = with_loader(spec, setting, storage_options, with_plain, splits, by_epochs=True)
        return evaluate_cache(
            rounds,
            spec.threshold,
            folder=spec.local_cache,
            limit_bytes=spec.local_cache_bytes,
            splits=len(splits),
            cached_bytes=sum(map(os.path.getsize, cached_files(folder))),
            dataset_bytes=dataset.source.bytes,
        )


def check_folder(parent: str) -> None:
    """Raise `OutputError` where no cache can be made in ``parent``."""
    with _new_folder(parent):
        pass


def _splits_of_a_pass(
    spec: SweepSpec, setting: TrialSetting, trial: Trial, dataset: FileDataset, room: float
) -> int:
    """Return how many splits take some time, as many for each worker. Raises `StorageError`."""
    split_bytes = max(1.0, dataset.source.bytes / dataset.splits)
    workers = max(1, setting.num_workers)
    # a pass as long as a trial: the start of an epoch would weigh too much in a shorter one
    wanted = trial.samples_per_s * trial.bytes_per_sample * spec.trial_s / split_bytes
    count = min(dataset.splits, workers * max(1, ceil(wanted / workers)))
    if count * split_bytes > room:
        count = int(room / split_bytes / workers) * workers
    if not count:
        size = format_bytes(workers * split_bytes)
        raise StorageError(
            f"{spec.local_cache} has no room for a split of each worker, {size} in all."
        )
    return count


def _round(plain: Loader, caching: Loader, step: Step, folder: str, number: int) -> CacheRound:
    """Run each pass once, every other time without the cache first."""
    uncached = _epoch(plain, step) if number % 2 == 0 else None
    for path in cached_files(folder):
        os.unlink(path)
    filling = _epoch(caching, step)
    evict(cached_files(folder))
    cached = _epoch(caching, step)
    return CacheRound(uncached or _epoch(plain, step), filling, cached)


def _epoch(loader: Loader, step: Step) -> CachePass:
    """Run steps on all batches."""
    begin = perf_counter()
    batches, samples, waited = iter(loader), 0, 0.0
    start = begin
    while (batch := next(batches, None)) is not None:
        waited += perf_counter() - start
        step(batch)
        samples += count_samples(batch)
        start = perf_counter()
    seconds = perf_counter() - begin
    return CachePass(samples / seconds, waited / seconds)


@contextmanager
def _new_folder(parent: str) -> Iterator[str]:
    """Yield a new folder in ``parent``, and remove it with what it made. Raises `OutputError`."""
    made = [each for each in (Path(parent), *Path(parent).parents) if not each.exists()]
    try:
        Path(parent).mkdir(parents=True, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="pipeprof-", dir=parent)
    except OSError as error:
        raise unusable(parent, error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # somebody else uses it by now
            for each in made:
                each.rmdir()
