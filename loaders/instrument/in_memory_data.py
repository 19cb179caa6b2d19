"""Detect data sets that hold their data in memory but are indexed one sample at a time."""

from __future__ import annotations

import weakref
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset, default_collate

from pipeprof.model import Indexing

_ROUNDS = 9
"""Timed rounds; the fastest counts, since other load on the machine only slows them down."""
_MOST_SAMPLES = 1024
"""Most samples that are fetched to time a batch."""


class IndexedData:
    """Describes the data set of ``loader`` if it is indexed in memory; it is not kept alive."""

    def __init__(self, loader: Any) -> None:
        """Inspect attributes only; no code of the user runs."""
        self._name, self._batch_size, self._data = "", 0, None
        self._indexing: Indexing | None = None
        if not isinstance(loader, DataLoader) or not loader.batch_size:
            return
        data = loader.dataset
        while type(data) is Subset:
            data = data.dataset
        if _gives_batches(data) or not _in_memory(data, loader.batch_size):
            return
        self._name, self._batch_size = type(data).__name__, min(loader.batch_size, _MOST_SAMPLES)
        if loader.collate_fn is default_collate and _is_plain_tensor_dataset(data):
            self._data = weakref.ref(data)

    def snapshot(self) -> Indexing | None:
        """Return the description; ``None`` where the data set is of another kind. Torch's own
        `TensorDataset` is timed once, which takes little time and has no effects. A user's data set
        is not called, and its times stay unknown."""
        if self._name and self._indexing is None:
            self._indexing = Indexing(self._name)
            data = self._data() if self._data is not None else None
            if data is not None:
                self._indexing = Indexing(self._name, *_fetch_times(data, self._batch_size))
        return self._indexing


def _gives_batches(data: Any) -> bool:
    """Return whether torch may find ``__getitems__``; no ``__getattr__`` of the user is called."""
    return any(hasattr(type(data), name) for name in ("__getitems__", "__getattr__"))


def _in_memory(data: Any, batch_size: int) -> bool:
    """Return whether an attribute is a tensor or array with more rows than a batch has."""
    values = getattr(data, "__dict__", {}).values()
    flat = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return any(
        type(each) in (torch.Tensor, np.ndarray) and each.ndim and len(each) > batch_size
        for each in flat
    )


def _is_plain_tensor_dataset(data: Any) -> bool:
    """Return whether indexing ``data`` runs only torch's code."""
    return type(data) is TensorDataset and all(
        type(each) is torch.Tensor and each.device.type == "cpu" and each.layout is torch.strided
        for each in data.tensors
    )


def _fetch_times(data: Any, size: int) -> tuple[float, float]:
    """Return the seconds to fetch a batch of ``size`` sample by sample, and by `index_select`.
    Unlike ``tensor[indices]``, `index_select` does not wait for native threads on few cores."""
    indices = np.random.default_rng(0).integers(0, len(data), size).tolist()
    seconds = []
    for _ in range(_ROUNDS):
        began = perf_counter()
        default_collate([data[index] for index in indices])
        middle = perf_counter()
        [tensor.index_select(0, torch.tensor(indices)) for tensor in data.tensors]
        seconds.append((middle - began, perf_counter() - middle))
    one_by_one_s, at_once_s = np.min(seconds, axis=0).tolist()
    return one_by_one_s, at_once_s
