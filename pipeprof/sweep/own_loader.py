"""Call the user's function that creates a loader, once for each setting of a sweep."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.utils.data import DataLoader

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.loaders.parent_watch import WorkerInit
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.references import Reference

_VARIED = ("num_workers", "prefetch_factor", "batch_size")
"""The arguments of a DataLoader that a sweep varies."""


class OwnLoader:
    """The user's function that creates a `torch.utils.data.DataLoader`.

    It is named ``module:function`` or ``file.py:function``. It is called with those of
    ``num_workers``, ``prefetch_factor`` and ``batch_size`` that it accepts, by name, and must
    pass them on to its loader.

    Raises:
        UsageError: There is no such function, or it does not accept ``num_workers``.
        PipeprofError: Its module fails to import.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._accepted = _accepted_names(Reference(text).load())
        if "num_workers" not in self._accepted:
            raise UsageError(
                f"{text} does not take num_workers; add that argument and pass it to its DataLoader"
            )

    def check(self, varied: Sequence[str]) -> None:
        """Raise `UsageError` unless the function accepts all arguments that the sweep varies."""
        for name in varied:
            if name not in self._accepted:
                raise UsageError(
                    f"{self._text} does not take {name}, so it cannot be varied; give one value, "
                    "or add that argument"
                )

    def make(self, setting: TrialSetting) -> DataLoader[Any]:
        """Create the loader of ``setting``. Raises `PipeprofError` when the function fails, and
        `UsageError` when it returns no DataLoader, or one of another setting."""
        asked = {
            name: value
            for name in _VARIED
            if name in self._accepted and (value := getattr(setting, name)) is not None
        }
        loader = Reference(self._text)(**asked)
        if not isinstance(loader, DataLoader):
            raise UsageError(
                f"{self._text} returned {type(loader).__name__}; it must return a "
                "torch.utils.data.DataLoader"
            )
        for name, value in asked.items():
            actual = getattr(loader, name)
            # with a batch_sampler, or without batching, a loader has no batch_size
            if actual != value and not (name == "batch_size" and actual is None):
                raise UsageError(
                    f"{self._text} was called with {name}={value}, but its DataLoader has "
                    f"{name}={actual}; pass it on"
                )
        if not isinstance(loader.worker_init_fn, WorkerInit):  # the same loader may come again
            loader.worker_init_fn = WorkerInit(loader.worker_init_fn)
        return loader


@contextmanager
def raise_loader_errors(text: str) -> Iterator[None]:
    """Raise what the loader of ``text`` raises in the body as a `PipeprofError` of one sentence."""
    try:
        yield
    except PipeprofError:
        raise
    except Exception as error:
        # the message of a worker's error is its whole traceback
        why, name = (str(error).strip().splitlines() or [""])[-1], type(error).__name__
        why = why if why.startswith(name) else f"{name}: {why}"
        raise PipeprofError(f"your loader {text} failed while it was iterated: {why}") from error


def _accepted_names(function: Any) -> tuple[str, ...]:
    """Return those of `_VARIED` that ``function`` accepts as keyword arguments."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions in C have no signature
        return _VARIED
    if any(each.kind is each.VAR_KEYWORD for each in known):
        return _VARIED
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(each.name for each in known if each.name in _VARIED and each.kind in by_name)
