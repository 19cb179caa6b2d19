"""Remember the name of each loader of a script, also where a framework builds another one."""

from __future__ import annotations

from types import FrameType
from typing import Any

from pipeprof.loaders.autopatch.call_sites import CallSites
from pipeprof.loaders.instrument.weak_ids import WeakIds


class LoaderNames:
    """The names of a process's loaders, by where they are created. No loader is kept alive."""

    def __init__(self, call_sites: CallSites) -> None:
        self.iterated = call_sites.iterated
        """Notes that the loader of this name is iterated."""
        self._call_sites = call_sites
        self._created: dict[str, None] = {}
        self._by_loader: WeakIds[str] = WeakIds()
        self._replaced: WeakIds[str] = WeakIds()
        """The name of the loader in whose place a framework built another one, by the latter."""

    @property
    def created(self) -> list[str]:
        """Names of all loaders that were created, in order."""
        return list(self._created)

    def register(self, loader: Any, frame: FrameType) -> None:
        """Name ``loader``, which is being created in ``frame``."""
        from pipeprof.loaders.instrument.rebuilds import note_origin

        name = self._call_sites.name(frame, type(loader).__name__)
        self._by_loader.set(loader, name)
        self._created[name] = None
        origin = note_origin(loader)
        replaced = self._replaced.get(origin) or self._by_loader.get(origin)
        if replaced is not None:
            self._replaced.set(loader, replaced)

    def of(self, loader: Any) -> str:
        """Return the name of ``loader``; of one that was not registered, that of its class."""
        return self._by_loader.get(loader) or type(loader).__name__

    def first_of(self, loader: Any) -> str:
        """Return the name of the loader that the script made, where ``loader`` replaced it."""
        from pipeprof.loaders.instrument.rebuilds import origin_of

        replaced = self._replaced.get(loader) if origin_of(loader) is not None else None
        return replaced or self.of(loader)
