"""Find torch's own iterator within what a loader returns."""

from __future__ import annotations

from typing import Any

from torch.utils.data.dataloader import _BaseDataLoaderIter


def torchs_within(iterator: Any) -> Any:
    """Return torch's iterator that ``iterator`` holds, as that of PyG's loaders does; ``iterator``
    itself where it holds none, or several."""
    if isinstance(iterator, _BaseDataLoaderIter):
        return iterator
    attributes = getattr(iterator, "__dict__", None)
    found = [each for each in (attributes or {}).values() if isinstance(each, _BaseDataLoaderIter)]
    return found[0] if len(found) == 1 else iterator
