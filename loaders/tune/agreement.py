"""What the ranks of a job agree on: terms, measurements and candidates."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.loaders.instrument.loader_info import known_length
from pipeprof.loaders.tune.remembered import kind_of
from pipeprof.loaders.tune.search import Candidate, MeasuredStretch
from pipeprof.model import TunedSetting


@dataclass(frozen=True)
class Terms:
    """What one rank begins with."""

    loader: str
    """What it loads, and how; the same in all ranks."""
    first: TunedSetting
    epoch_batches: int | None
    cores: int
    host: str


@dataclass(frozen=True)
class AgreedTerms:
    """What all ranks begin with."""

    first: TunedSetting
    epoch_batches: int | None
    notes: tuple[str, ...] = ()
    refused: bool = False
    """Whether the ranks cannot be tuned together."""


def terms_of(loader: DataLoader[Any], first: TunedSetting) -> Terms:
    """Return the terms of this rank, which would begin with ``first``."""
    iterable = isinstance(loader.dataset, IterableDataset)
    batches = None if iterable else known_length(loader)
    cores = len(os.sched_getaffinity(0))
    return Terms(kind_of(loader), first, batches, cores, platform.node())


def agreed_terms(ranks: Sequence[Terms]) -> AgreedTerms:
    """Return the terms of rank 0, if the loaders are alike."""
    first = ranks[0]
    for rank, each in enumerate(ranks):
        if each.loader != first.loader:
            note = f"ranks 0 and {rank} have other loaders: {first.loader}; {each.loader}"
            return AgreedTerms(first.first, None, (note,), refused=True)
    known = [each.epoch_batches for each in ranks if each.epoch_batches is not None]
    notes = [f"decided by the slowest of {len(ranks)} ranks"] if len(ranks) > 1 else []
    least = min(ranks, key=lambda each: each.cores)
    most = max(ranks, key=lambda each: each.cores)
    if least.cores < most.cores:
        notes.append(
            f"{least.host} has {least.cores} cores, {most.host} has {most.cores}; both get the same"
        )
    return AgreedTerms(first.first, min(known, default=None), tuple(notes))


def slowest(ranks: Sequence[MeasuredStretch]) -> tuple[int, MeasuredStretch]:
    """Return the stretch of the rank that waited longest for a batch, and that rank. A setting that
    failed in one rank failed in all."""
    for rank, each in enumerate(ranks):
        if each.error is not None:
            return rank, each
    return max(enumerate(ranks), key=lambda each: each[1].waited_s / each[1].batches)


def first_error(ranks: Sequence[str | None]) -> str | None:
    return next((each for each in ranks if each is not None), None)


def of_rank(rank: int, ranks: Sequence[Sequence[Candidate]]) -> Sequence[Candidate]:
    return ranks[rank]
