"""A sweep over the user's own loader: a function of theirs makes it anew for each setting."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils.data import DataLoader

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.loaders.parent_watch import WorkerInit
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.references import Reference

_NAMES = ("num_workers", "prefetch_factor", "batch_size")
"""What a sweep varies, by torch's names."""


class OwnLoader:
    """``text``: ``module:function`` or ``file.py:function``. The function is called with those of
    ``num_workers``, ``prefetch_factor`` and ``batch_size`` that it takes, by name, and returns a
    `torch.utils.data.DataLoader` that has them."""

    def __init__(self, text: str) -> None:
        """Raises `UsageError` when there is no such function, or it does not take
        ``num_workers``; `PipeprofError` when its module fails to import."""
        self._text = text
        self._takes = _taken(Reference(text).load())
        if "num_workers" not in self._takes:
            raise UsageError(
                f"{text} does not take num_workers; let it take that, and give it to its DataLoader"
            )

    def check(self, several: tuple[str, ...]) -> None:
        """``several``: what the sweep is to vary. Raises `UsageError` when the function does not
        take it."""
        for name in several:
            if name not in self._takes:
                raise UsageError(
                    f"{self._text} does not take {name}, so it cannot be varied; give one value, "
                    "or let it take that"
                )

    def make(self, setting: TrialSetting) -> DataLoader[Any]:
        """Raises `PipeprofError` when the function fails, `UsageError` when what it returns is no
        DataLoader, or not one of this ``setting``."""
        asked = {
            name: value
            for name in _NAMES
            if name in self._takes and (value := getattr(setting, name)) is not None
        }
        loader = Reference(self._text)(**asked)
        if not isinstance(loader, DataLoader):
            raise UsageError(
                f"{self._text} returned {type(loader).__name__}; it must return a "
                "torch.utils.data.DataLoader"
            )
        for name, value in asked.items():
            found = getattr(loader, name)
            # a loader with a batch_sampler, or that makes no batches, has no batch_size to show
            if found != value and not (name == "batch_size" and found is None):
                raise UsageError(
                    f"{self._text} was called with {name}={value}, and its DataLoader has "
                    f"{name}={found}; pass it on"
                )
        if not isinstance(loader.worker_init_fn, WorkerInit):  # it may return the same one again
            loader.worker_init_fn = WorkerInit(loader.worker_init_fn)
        return loader


@contextmanager
def explained(text: str) -> Iterator[None]:
    """What the loader of ``text`` raises while it is iterated, as a sentence. Raises
    `PipeprofError`."""
    try:
        yield
    except PipeprofError:
        raise
    except Exception as error:
        # a worker's comes with its whole traceback for a message
        last = (str(error).strip().splitlines() or [""])[-1]
        told = last if last.startswith(type(error).__name__) else f"{type(error).__name__}: {last}"
        raise PipeprofError(f"your loader {text} failed while it was iterated: {told}") from error


def _taken(function: Any) -> tuple[str, ...]:
    """Those of `_NAMES` that ``function`` can be called with."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # as of some that are written in C
        return _NAMES
    if any(each.kind is each.VAR_KEYWORD for each in known):
        return _NAMES
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(each.name for each in known if each.name in _NAMES and each.kind in by_name)
