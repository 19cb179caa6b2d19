"""Measure the loaders of fastai.

Its ``DataLoader`` is none of torch's. It gives torch's iterators a stand-in for one, and takes
their batches, so that workers, queue and pinning are torch's own.
"""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any

from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.monkeypatch import MakeMethod, Method
from pipeprof.model import LoaderConfig

MODULE = "fastai.data.load"
STAND_IN = "_FakeLoader"
_ONE_BATCH_FRAMES = 4
"""Calls from ``one_batch`` to an iterator, at most."""
_FIXED = ("prefetch_factor", "persistent_workers", "in_order")
"""Options of torch that fastai's loaders do not take, or that have no effect there."""


def is_stand_in(loader: Any) -> bool:
    """Return whether ``loader`` is what fastai gives torch's iterators in place of a DataLoader."""
    return type(loader).__module__ == MODULE and type(loader).__name__ == STAND_IN


def wrap_iterators(module: ModuleType, wrapper: MakeMethod, key: str) -> None:
    """Replace the classes of torch's iterators that ``module``, `MODULE`, calls by
    ``wrapper(class)``, once for each ``key``."""
    present: Any = module
    if key not in getattr(present._loaders[0], "_pipeprofs_keys", ()):
        wrapped: tuple[Any, ...] = tuple(_but_one_batch(wrapper, each) for each in present._loaders)
        for each, before in zip(wrapped, present._loaders, strict=True):
            each._pipeprofs_keys = (*getattr(before, "_pipeprofs_keys", ()), key)
        present._loaders = wrapped


def _but_one_batch(wrapper: MakeMethod, original: Method) -> Method:
    """Return ``wrapper(original)``, and the original for ``one_batch``, with which fastai looks at
    a batch, as to show it, without workers."""
    wrapped = wrapper(original)

    def start(stand_in: Any) -> Any:
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_ONE_BATCH_FRAMES):
            if frame is not None and frame.f_code.co_name == "one_batch":
                return original(stand_in)
            frame = frame.f_back if frame is not None else None
        return wrapped(stand_in)

    return start


def config_of(stand_in: Any, start_method: str | None) -> LoaderConfig:
    """Return the settings of the loader that ``stand_in`` stands for."""
    workers = stand_in.num_workers
    batch_size = safe_getattr(stand_in.d, "bs")
    return LoaderConfig(
        num_workers=workers,
        prefetch_factor=stand_in.prefetch_factor if workers else None,
        batch_size=batch_size if type(batch_size) is int else None,
        pin_memory=bool(stand_in.pin_memory),
        start_method=start_method,
        kind="map" if safe_getattr(stand_in.d, "indexed") else "iterable",
        fixed=_FIXED,
    )
