"""Tell which loaders torch's own iterators serve, and find these within what a loader returns."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, dataloader

from pipeprof.loaders.instrument import fastai
from pipeprof.loaders.instrument.attributes import safe_getattr

_TORCHS: Any = getattr(dataloader, "_BaseDataLoaderIter", ())
"""The class of torch's iterators; none where an unknown version of torch has no such class."""


def has_torchs(loader: Any) -> bool:
    """Return whether ``loader`` is iterated by one of torch's iterators."""
    return isinstance(loader, DataLoader) or fastai.is_stand_in(loader)


def is_torchs(iterator: Any) -> bool:
    """Return whether ``iterator`` is one of torch's own."""
    return issubclass(type(iterator), _TORCHS)


def torchs_within(iterator: Any) -> Any:
    """Return torch's iterator that ``iterator`` holds, as that of PyG's loaders does; ``iterator``
    itself where it holds none, or several."""
    if is_torchs(iterator):
        return iterator
    attributes = safe_getattr(iterator, "__dict__")
    values = [*attributes.values()] if isinstance(attributes, dict) else []
    # `isinstance` would ask each for its class, and a lazy object would then be made
    found = [each for each in values if is_torchs(each)]
    return found[0] if len(found) == 1 else iterator
