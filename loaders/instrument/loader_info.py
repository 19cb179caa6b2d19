"""Describe a loader's settings and its data source, and the stages that a run did not observe."""

from __future__ import annotations

import logging
import multiprocessing
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.instrument import fastai
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.limited_cache import limited_cache_of
from pipeprof.loaders.instrument.torchs_iterator import has_torchs
from pipeprof.log import log_caught
from pipeprof.model import BatchLog, DataSource, LimitedCache, LoaderConfig, SharedReads

_log = logging.getLogger(__name__)


_NO_WORKERS = LoaderConfig(num_workers=0)


@dataclass(frozen=True)
class LoaderInfo:
    """A loader's settings at the start of a pass; neither it nor its data set is kept alive."""

    config: LoaderConfig = _NO_WORKERS
    """The settings of a torch ``DataLoader``; of other loaders, a loader without workers."""
    batch_size: Any = None
    source: DataSource | None = None
    """What is read; ``None`` where the data set does not say."""
    skips: SkipCounter | None = None
    """The counter of skipped data, for data sets of `open_dataset`."""
    shared_reads: SharedReads | None = None
    limited_cache: LimitedCache | None = None
    notes: tuple[str, ...] = ()
    """Notes of the store on how the bytes are read, for data sets of `open_dataset`."""

    @property
    def capacity(self) -> int:
        """Most batches that workers prefetch."""
        return self.config.num_workers * (self.config.prefetch_factor or 1)

    @property
    def warmup(self) -> int:
        """Batches at an epoch's start that only fill the prefetch queue."""
        return max(1, self.capacity)

    @property
    def source_now(self) -> DataSource | None:
        """The source, with what was skipped so far."""
        if self.source is None or self.skips is None:
            return self.source
        return replace(self.source, skipped=self.skips.total)


def describe_loader(loader: Any) -> LoaderInfo:
    """Read the settings of ``loader`` and its data set."""
    dataset = safe_getattr(loader, "dataset")
    source, skips = safe_getattr(dataset, "source"), safe_getattr(dataset, "skips")
    known = isinstance(source, DataSource)
    notes = safe_getattr(dataset, "notes") if known else ()
    return LoaderInfo(
        config=_config_of(loader) if has_torchs(loader) else _NO_WORKERS,
        batch_size=safe_getattr(loader, "batch_size"),
        source=source if known else None,
        skips=skips if isinstance(skips, SkipCounter) else None,
        shared_reads=_shared_reads(dataset),
        limited_cache=limited_cache_of(dataset),
        notes=notes if isinstance(notes, tuple) else (),
    )


def _shared_reads(dataset: Any) -> SharedReads | None:
    """Recognise data sets of which each rank reads all: `datasets.IterableDataset` that is split by
    samples, and the shard that Accelerate makes of any iterable data set."""
    if type(dataset).__name__ == "IterableDatasetShard":
        ranks = safe_getattr(dataset, "num_processes")
        return SharedReads(ranks) if type(ranks) is int and ranks > 1 else None
    ranks = safe_getattr(safe_getattr(dataset, "_distributed"), "world_size")
    shards = safe_getattr(dataset, "num_shards") if ranks else None
    if type(ranks) is int and type(shards) is int and shards % ranks:
        return SharedReads(ranks, shards)
    return None


def _config_of(loader: Any) -> LoaderConfig:
    if fastai.is_stand_in(loader):
        return fastai.config_of(loader, _start_method(loader) if loader.num_workers else None)
    iterable = isinstance(loader.dataset, IterableDataset)
    batch_size = loader.batch_size or safe_getattr(loader.dataset, "batch_size")
    return LoaderConfig(
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
        batch_size=batch_size if type(batch_size) is int else None,
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        in_order=bool(getattr(loader, "in_order", True)),
        start_method=_start_method(loader) if loader.num_workers else None,
        kind="iterable" if iterable else "map",
        sampler=None if iterable else _sampler_of(loader),
    )


def _sampler_of(loader: DataLoader[Any]) -> str:
    """Return the class that picks indices; torch's own `BatchSampler` asks another one for them."""
    picks: Any = loader.batch_sampler
    if picks is None or type(picks) is BatchSampler:
        picks = safe_getattr(picks, "sampler") or loader.sampler
    return f"{type(picks).__module__}.{type(picks).__qualname__}"


def known_length(loader: Any) -> int | None:
    """Return the number of batches of a pass; ``None`` where it is unknown. An iterable data set is
    not asked, because torch warns later if it has more batches than that."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return None
    try:
        return len(loader)
    except Exception as error:
        log_caught(_log, error, "the number of batches is not known")
        return None


def _start_method(loader: DataLoader[Any]) -> str:
    """Return ``fork``, ``forkserver`` or ``spawn``."""
    context = loader.multiprocessing_context
    method = context.get_start_method() if context is not None else None
    # without allow_none the call would set the default for the whole process
    method = method or multiprocessing.get_start_method(allow_none=True)
    return str(method or multiprocessing.get_all_start_methods()[0])


def unobserved_stages(config: LoaderConfig, log: BatchLog) -> dict[str, str]:
    """Return each stage that this run did not observe, with the reason."""
    missing = {}
    if not log.h2d_s:
        missing["h2d"] = "no batch went through pipeprof.to_device"
    if config.pin_memory and not any(log.pinned_s):
        missing["pin"] = "torch pinned nothing: it found no accelerator"
    if any(log.fetch_end_s) and not any((*log.read_s, *log.decode_s, *log.transform_s)):
        for stage in ("read", "decode", "transform"):
            missing[stage] = "the data set is a black box: it is part of fetch"
    return missing
