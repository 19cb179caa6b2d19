"""The loaders of a script that are tuned: by the script itself, or by ``pipeprof run --tune``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pipeprof.loaders.autopatch.shown_loaders import ShownLoaders

if TYPE_CHECKING:  # importing these imports torch
    from pipeprof.loaders.instrument.profiler import LoaderProfiler
    from pipeprof.loaders.tune.tuned_loader import TunedLoader
    from pipeprof.model import Tuning

Tune = Callable[[str, Any], "TunedLoader"]
"""Tunes a loader, given its name."""


class TunedLoaders:
    """Of each name, the loader that was tuned last."""

    def __init__(self, tune: Tune | None) -> None:
        """``tune`` tunes the loaders that the script does not; ``None`` where none is."""
        self._tune = tune
        self._by_name: dict[str, TunedLoader] = {}

    def forget(self) -> None:
        """Begin anew, as a forked process does."""
        self._by_name = {}

    def add(self, name: str, loader: TunedLoader, shown: ShownLoaders) -> None:
        """Report a loader that the script tunes itself."""
        if self._by_name.get(name) is not loader:
            self._by_name[name] = loader
            if live := shown.of(name, in_parts=True):
                loader.show(live)

    def batches(self, name: str, loader: Any, shown: ShownLoaders) -> Iterator[Any] | None:
        """Return an epoch over ``loader`` while it is tuned; ``None`` where it is not."""
        from torch.utils.data import DataLoader

        if self._tune is None or not isinstance(loader, DataLoader):
            return None
        known = self._by_name.get(name)
        if known is None or known._loader is not loader:
            self.add(name, self._tune(name, loader), shown)
        tuned = self._by_name[name]
        return iter(tuned) if tuned.is_tuned else None

    def profilers(self) -> dict[str, LoaderProfiler]:
        """Return what measures the setting in use, by name."""
        return {name: each._profiler for name, each in self._by_name.items() if each.is_tuned}

    def tunings(self) -> dict[str, Tuning]:
        """Return what was done to each loader that was to be tuned, by its name."""
        return {name: loader.tuning() for name, loader in self._by_name.items()}


def is_trial(loader: Any) -> bool:
    """Return whether ``loader`` is one that tuning made of another, and measures."""
    variants: Any = sys.modules.get("pipeprof.loaders.tune.variant")
    return variants is not None and bool(variants.is_variant(loader))
