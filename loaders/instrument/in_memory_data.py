"""Data sets that hold their data in memory, of which torch asks for one sample at a time."""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate

from pipeprof.model import Indexing

_TURNS = 9
"""Timed of either; the fastest is taken, as others on the machine only slow it down."""
_MOST = 1024
"""Samples of a batch that are fetched to time it."""


class IndexedData:
    """What is known of the data set of ``loader``; it is not kept alive."""

    def __init__(self, loader: Any) -> None:
        """Looks at attributes, and calls nothing of the user's."""
        self._name, self._batch_size, self._data = "", 0, None
        self._found: Indexing | None = None
        if not isinstance(loader, DataLoader) or not loader.batch_size:
            return
        data = loader.dataset
        while type(data) is Subset:
            data = data.dataset
        if _gives_batches(data) or not _in_memory(data, loader.batch_size):
            return
        self._name, self._batch_size = type(data).__name__, min(loader.batch_size, _MOST)
        if loader.collate_fn is default_collate and _is_torchs(data):
            self._data = weakref.ref(data)

    def snapshot(self) -> Indexing | None:
        """``None``: it is not such a data set. The code of torch's own `TensorDataset` is timed
        once, which nobody notices; a user's own is not called."""
        if self._name and self._found is None:
            self._found = Indexing(self._name)
            data = self._data() if self._data is not None else None
            if data is not None:
                self._found = Indexing(self._name, *_timed(data, self._batch_size))
        return self._found


def _gives_batches(data: Any) -> bool:
    """Whether torch may find ``__getitems__``, which is not asked for: that may be user's code."""
    return any(hasattr(type(data), name) for name in ("__getitems__", "__getattr__"))


def _in_memory(data: Any, batch_size: int) -> bool:
    """Whether it has tensors or arrays for attributes, with more rows than a batch has."""
    values = getattr(data, "__dict__", {}).values()
    rows = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return any(
        type(each) in (torch.Tensor, np.ndarray) and each.ndim and len(each) > batch_size
        for each in rows
    )


def _is_torchs(data: Any) -> bool:
    """Whether to index it runs no code but torch's."""
    return type(data) is TensorDataset and all(
        type(each) is torch.Tensor and each.device.type == "cpu" and each.layout is torch.strided
        for each in data.tensors
    )


def _timed(data: Any, size: int) -> tuple[float, float]:
    """Seconds to make a batch of ``size``: sample by sample, and by `index_select`, which unlike
    ``tensor[indices]`` waits for no native threads where cores are short."""
    places = np.random.default_rng(0).integers(0, len(data), size).tolist()
    seconds = []
    for _ in range(_TURNS):
        began = perf_counter()
        default_collate([data[place] for place in places])
        middle = perf_counter()
        [tensor.index_select(0, torch.tensor(places)) for tensor in data.tensors]
        seconds.append((middle - began, perf_counter() - middle))
    one_by_one_s, at_once_s = np.min(seconds, axis=0).tolist()
    return one_by_one_s, at_once_s
