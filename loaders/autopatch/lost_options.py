"""Detect options that a framework loses when it rebuilds the loaders of a script.

Frameworks copy the arguments that they know, and ``in_order=False`` is newer than most of them.
Without it batches arrive in order again, and one slow batch delays those after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pipeprof.loaders.instrument.attributes import safe_getattr


class LostOptions:
    """Tracks which loaders of a process were rebuilt without ``in_order=False``, by their names."""

    def __init__(self) -> None:
        self._unordered: dict[str, list[tuple[str, int]]] = {}
        """For each loader, those with ``in_order=False`` that existed when it was created. Each is
        given by its name and the `id` of its data set."""
        self._rebuilt: dict[str, str] = {}
        """For each loader that lost the option, the loader that it seems to replace."""

    def created(self, name: str, others: Iterable[tuple[Any, str]]) -> None:
        """Note that loader ``name`` is created while ``others``, with their names, exist."""
        self._unordered[name] = [
            (other, id(safe_getattr(loader, "dataset")))
            for loader, other in others
            if safe_getattr(loader, "in_order") is False
        ]

    def iterated(self, name: str, loader: Any) -> None:
        """Note that ``loader``, which was created as ``name``, is iterated."""
        unordered = self._unordered.pop(name, [])
        if safe_getattr(loader, "in_order") is True:
            own = id(safe_getattr(loader, "dataset"))
            self._rebuilt.update((name, other) for other, dataset in unordered if dataset == own)

    def notes(self, name: str, iterated: Collection[str]) -> tuple[str, ...]:
        """Return notes for the profile of ``name``, given all loaders that were ``iterated``."""
        other = self._rebuilt.get(name)
        if other is None or other in iterated:
            return ()
        note = (
            f"in_order=False was lost: {other} has it, but this loader was iterated in its place, "
            "and keeps the order. Pass it to what creates this loader, or try it by "
            "pipeprof run --set in_order=false."
        )
        return (note,)
