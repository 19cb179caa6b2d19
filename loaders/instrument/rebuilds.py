"""Notice that a framework builds another DataLoader in the place of the user's.

Accelerate, Ray Train, Lightning and others make a new loader with a sampler of their own, inside a
function that is given the user's loader. So a new loader replaces another one if a function of a
library that creates it has the other one as an argument. Both must have the same data set, or the
new one a stream that holds it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.frames import framework_arguments
from pipeprof.loaders.instrument.loader_info import describe_loader
from pipeprof.loaders.instrument.weak_ids import WeakIds
from pipeprof.model import LoaderConfig


@dataclass(frozen=True)
class Origin:
    """The loader that a framework replaced."""

    config: LoaderConfig
    profiler: Any
    """That of the loader, if it was wrapped."""
    dataset: int
    """The `id` of its data set."""


_origins: WeakIds[Origin] = WeakIds()
"""What each loader replaces, unless it turns out to have another data set."""
_profilers: WeakIds[Any] = WeakIds()
"""The profilers of stand-ins, and of loaders that are measured from inside."""


def origin_of(loader: Any) -> Origin | None:
    """Return the loader that ``loader`` replaces."""
    origin = _origins.get(loader)
    if origin is None:
        return None
    dataset = safe_getattr(loader, "dataset")
    same = origin.dataset == id(dataset) or (
        # Accelerate and transformers divide a stream by one that holds it
        isinstance(dataset, IterableDataset)
        and origin.dataset == id(safe_getattr(dataset, "dataset"))
    )
    return origin if same else None


def set_profiler(loader: Any, profiler: Any) -> None:
    """Note that ``profiler`` measures ``loader``, and what replaces it."""
    _profilers.set(loader, profiler)


def profiler_of(loader: Any) -> Any:
    """Return the profiler that measures ``loader``; ``None`` if none does."""
    profiler = _profilers.get(loader)
    if profiler is None and (origin := origin_of(loader)) is not None:
        profiler = origin.profiler
    return profiler


def note_origin(created: Any) -> Any | None:
    """Note, and return, the loader that a new one may replace, which is just being created."""
    for other in framework_arguments(sys._getframe(1)):
        if other is not created and (isinstance(other, DataLoader) or profiler_of(other)):
            _origins.set(created, _origin(other))
            return other
    return None


def _origin(loader: Any) -> Origin:
    known = origin_of(loader)
    # the options that the user gave, also where loaders are rebuilt several times
    config = known.config if known else describe_loader(loader).config
    return Origin(config, profiler_of(loader), id(safe_getattr(loader, "dataset")))
