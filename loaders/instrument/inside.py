"""Measure a DataLoader from inside, where torch's iterator is made, whoever asks for it.

Some loaders pass on the batches of a DataLoader that they hold, or those of their parent class.
There the DataLoader is measured, and what surrounds it belongs to the training step.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from torch.utils.data import DataLoader

from pipeprof.loaders.instrument import fastai
from pipeprof.loaders.instrument.attributes import safe_getattr
from pipeprof.loaders.instrument.monkeypatch import (
    Method,
    observe_creation,
    working_class,
    wrap_in,
    wrap_method,
)
from pipeprof.loaders.instrument.rebuilds import note_origin, profiler_of, set_profiler
from pipeprof.log import suppress_and_log

_log = logging.getLogger(__name__)

_HOLDERS = ("base_dataloader", "_dataloader")
"""Attributes that hold the DataLoader: of Accelerate, and of Fabric and Ray Train."""


class _ThisThread(threading.local):
    loader: Any = None
    """The loader whose ``__iter__`` runs and is measured already."""
    outer: iterating_outer | None = None
    """What iterates a loader that may iterate a DataLoader, while none was found."""


_this_thread = _ThisThread()


def loader_within(loader: Any) -> Any | None:
    """Return the DataLoader whose own iterator delivers the batches of ``loader``; ``None`` where
    that is ``loader`` itself, or unknown. No loader is asked for its truth, which is its length."""
    with suppress_and_log(_log, "a loader is not measured from inside"):
        inner = _inner_loader(loader)
        if inner is not None:
            within = loader_within(inner)
            return inner if within is None else within
        if isinstance(loader, DataLoader) and _passes_on(type(loader)):
            return loader
    return None


def holds_another(loader: Any) -> bool:
    """Return whether ``loader`` yields the batches of another DataLoader, which is measured."""
    inner = loader_within(loader)
    return inner is not None and inner is not loader


def _inner_loader(loader: Any) -> Any | None:
    attributes = safe_getattr(loader, "__dict__") or {}
    candidates = [attributes.get(name) for name in _HOLDERS]
    candidates.append(_only(attributes.get("flattened")))  # Lightning's CombinedLoader
    pipeline = attributes.get("pipeline")  # WebDataset's WebLoader
    candidates.append(pipeline[0] if isinstance(pipeline, list) and pipeline else None)
    return next((each for each in candidates if isinstance(each, DataLoader)), None)


def _only(things: Any) -> Any | None:
    return things[0] if isinstance(things, list) and len(things) == 1 else None


def _passes_on(cls: type) -> bool:
    """Return whether the ``__iter__`` of ``cls`` iterates that of its parent."""
    first = next(each for each in cls.__mro__ if "__iter__" in vars(each))
    return working_class(cls, "__iter__") is not first


def measure_inside(loader: Any, profiler: Any) -> None:
    """Let ``profiler`` measure the DataLoader ``loader`` wherever it is iterated."""
    set_profiler(loader, profiler)
    hook_class(type(loader))


def hook_class(cls: type) -> None:
    """Measure the loaders of ``cls`` that have a profiler, or that replace one that has."""
    wrap_method(cls, "__iter__", _measured_iter, key="inside")
    stateful = next((each for each in cls.__mro__ if "state_dict" in vars(each)), None)
    if stateful is not None:
        wrap_in(stateful, "state_dict", _hooked_state_dict, key="inside")


def watch_loaders() -> None:
    """Have `iterating_outer` notice DataLoaders of all classes."""
    classes: list[type] = [DataLoader]
    while classes:
        cls = classes.pop()
        hook_class(cls)
        classes += cls.__subclasses__()
    watch_rebuilds()
    if module := sys.modules.get(fastai.MODULE):
        fastai.wrap_iterators(module, _measured_iter, key="inside")


def watch_rebuilds() -> None:
    """Measure from now on what is built in the place of a measured loader."""
    observe_creation(DataLoader, _created, key="inside")


def _created(loader: Any) -> None:
    with suppress_and_log(_log, "a new loader is not measured"):
        note_origin(loader)
        hook_class(type(loader))


def _measured_iter(original: Method) -> Method:
    @wraps(original)
    def hooked_iter(loader: Any) -> Any:
        if is_being_measured(loader) or holds_another(loader):
            return original(loader)
        profiler = _profiler_of_outer(loader) or profiler_of(loader)
        if profiler is None:
            return original(loader)
        with being_measured(loader):
            return profiler.iterate(loader, partial(original, loader))

    return hooked_iter


def _hooked_state_dict(original: Method) -> Method:
    """Torchdata's ``state_dict`` starts the workers."""

    @wraps(original)
    def hooked(loader: Any) -> Any:
        profiler = profiler_of(loader)
        if profiler is None:
            return original(loader)
        return profiler.hooked_state_dict(loader, partial(original, loader))

    return hooked


def is_being_measured(loader: Any) -> bool:
    """Return whether this thread is within the ``__iter__`` of ``loader``, for a profiler."""
    return _this_thread.loader is loader


def _profiler_of_outer(loader: Any) -> Any:
    """Return the profiler of the outer loader that begins to iterate ``loader``, which it measures
    from now on; ``None`` if there is none, or ``loader`` has another one."""
    waiting, profiler = _this_thread.outer, profiler_of(loader)
    if waiting is None or profiler not in (None, waiting.profiler):
        return None
    with suppress_and_log(_log, "a DataLoader in another loader is not measured from inside"):
        _this_thread.outer = None
        waiting.step_aside()
        set_profiler(loader, waiting.profiler)
    return profiler_of(loader)


def is_awaited_by_outer() -> bool:
    """Return whether the next DataLoader that this thread iterates is measured for another loader,
    which iterates it."""
    return _this_thread.outer is not None


class iterating_outer:  # noqa: N801  (used as a function)
    """Within the body, in which a loader begins or makes its first batch, the first DataLoader that
    it iterates is measured by ``profiler``. Before that ``step_aside`` is called."""

    __slots__ = ("_outer", "profiler", "step_aside")

    def __init__(self, profiler: Any, step_aside: Callable[[], None]) -> None:
        self.profiler, self.step_aside = profiler, step_aside

    def __enter__(self) -> None:
        self._outer, _this_thread.outer = _this_thread.outer, self

    def __exit__(self, *error: object) -> None:
        _this_thread.outer = self._outer


class being_measured:  # noqa: N801  (used as a function)
    """Within the body, the ``__iter__`` of ``loader`` is not measured again. It adds no frame to
    the stack, which torch formats in each worker that it starts."""

    __slots__ = ("_loader", "_outer")

    def __init__(self, loader: Any) -> None:
        self._loader, self._outer = loader, _this_thread.loader

    def __enter__(self) -> None:
        _this_thread.loader = self._loader

    def __exit__(self, *error: object) -> None:
        _this_thread.loader = self._outer
