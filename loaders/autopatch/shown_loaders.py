"""Show and export the figures of a script's loaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importing these imports torch
    from pipeprof.loaders.instrument.profiler import LoaderProfiler
    from pipeprof.loaders.live.live_pass import LiveLoader
    from pipeprof.loaders.live.periodic import Periodic


class ShownLoaders:
    """What is shown of each loader, by its name."""

    def __init__(self, outputs: Callable[[], Sequence[Periodic]] | None) -> None:
        """``outputs`` returns where figures are shown and exported; ``None`` shows nothing."""
        self._outputs = outputs
        self._by_name: dict[str, LiveLoader] = {}

    def of(self, name: str, in_parts: bool = False) -> LiveLoader | None:
        """Return what is shown of the loaders ``name``. For ``in_parts`` see `LiveLoader`."""
        if self._outputs is None:
            return None
        from pipeprof.loaders.live.live_pass import LiveLoader

        if name not in self._by_name or self._by_name[name].in_parts != in_parts:
            self._by_name[name] = LiveLoader(name, self._outputs(), in_parts)
        return self._by_name[name]

    def show(self, profiler: LoaderProfiler) -> None:
        """Show a loader that the script wrapped, also where the script shows it itself."""
        if profiler.live is None:
            profiler.live = self.of(profiler.name)
        elif self._outputs is not None:
            profiler.live.add(self._outputs())
