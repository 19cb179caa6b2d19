"""What a loader is set to, and what of it cannot be seen."""

from __future__ import annotations

import logging
import multiprocessing
from dataclasses import replace
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.loaders.bad_data import Skips
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.log import log_caught
from pipeprof.model import BatchLog, DataSource, LoaderConfig

_log = logging.getLogger(__name__)


def describe_loader(loader: Any) -> LoaderConfig:
    """The settings of ``loader``, as far as it has them."""
    if not isinstance(loader, DataLoader):
        return LoaderConfig(num_workers=0)
    iterable = isinstance(loader.dataset, IterableDataset)
    return LoaderConfig(
        num_workers=loader.num_workers,
        prefetch_factor=loader.prefetch_factor if loader.num_workers else None,
        batch_size=loader.batch_size or _whole(safe_getattr(loader.dataset, "batch_size")),
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        in_order=bool(getattr(loader, "in_order", True)),
        start_method=start_method(loader) if loader.num_workers else None,
        kind="iterable" if iterable else "map",
    )


def describe_source(loader: Any) -> DataSource | None:
    """What is read, of a data set that says so."""
    source = safe_getattr(safe_getattr(loader, "dataset"), "source")
    return source if isinstance(source, DataSource) else None


def describe_skips(loader: Any) -> Skips | None:
    """What counts the data that was left out, of a data set of ours."""
    skips = safe_getattr(safe_getattr(loader, "dataset"), "skips")
    return skips if isinstance(skips, Skips) else None


def describe_notes(loader: Any) -> tuple[str, ...]:
    """How the bytes are got, where the store of a data set of ours has something to say of it."""
    dataset = safe_getattr(loader, "dataset")
    notes = safe_getattr(safe_getattr(dataset, "store"), "notes") if describe_source(loader) else ()
    return notes if isinstance(notes, tuple) else ()


def with_skipped(source: DataSource | None, skips: Skips | None) -> DataSource | None:
    """``source`` with what was left out of it until now."""
    return replace(source, skipped=skips.total) if source and skips else source


def known_length(loader: Any) -> int | None:
    """Batches of a pass, where to ask for it changes nothing: torch remembers that an iterable data
    set was asked."""
    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return None
    try:
        return len(loader)
    except Exception as error:
        log_caught(_log, error, "the number of batches is not known")
        return None


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def start_method(loader: DataLoader[Any]) -> str:
    """``fork``, ``forkserver`` or ``spawn``."""
    context = loader.multiprocessing_context
    chosen = context.get_start_method() if context is not None else None
    # asking for the default without allow_none would fix it for the whole process
    chosen = chosen or multiprocessing.get_start_method(allow_none=True)
    return str(chosen or multiprocessing.get_all_start_methods()[0])


def never_seen(config: LoaderConfig, log: BatchLog) -> dict[str, str]:
    """Stages that could not be seen in this run, and why."""
    missing = {}
    if not log.h2d_s:
        missing["h2d"] = "no batch went through pipeprof.to_device"
    if config.pin_memory and not any(log.pinned_s):
        missing["pin"] = "torch pinned nothing: it saw no accelerator"
    if any(log.fetch_end_s) and not any((*log.read_s, *log.decode_s, *log.transform_s)):
        for stage in ("read", "decode", "transform"):
            missing[stage] = "the data set is a black box: it is part of fetch"
    return missing
