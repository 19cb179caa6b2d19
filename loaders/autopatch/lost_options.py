"""Loaders that a framework makes anew from those of a script, and what is lost on the way.

Frameworks copy the arguments that they know. ``in_order=False`` is younger than most of them:
without it batches come in order again, one slow batch holds up the rest, and nobody is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pipeprof.loaders.instrument.attributes import safe_getattr


class LostOptions:
    """Of the loaders of a process, by their names."""

    def __init__(self) -> None:
        self._asked: dict[str, list[tuple[str, int]]] = {}
        """Name → those that asked for ``in_order=False`` when it was made, and the `id` of their
        data set."""
        self._lost: dict[str, str] = {}
        """Name → the one in whose place it seems to be."""

    def made(self, name: str, others: Iterable[tuple[Any, str]]) -> None:
        """``name`` is being made, its data set is there, and these ``others`` live: each, and its
        name."""
        self._asked[name] = [
            (other, id(safe_getattr(loader, "dataset")))
            for loader, other in others
            if safe_getattr(loader, "in_order") is False
        ]

    def iterated(self, name: str, loader: Any) -> None:
        """``loader``, which was made as ``name``, is."""
        asked = self._asked.pop(name, [])
        if safe_getattr(loader, "in_order") is True:
            dataset = id(safe_getattr(loader, "dataset"))
            self._lost.update((name, other) for other, theirs in asked if theirs == dataset)

    def notes(self, name: str, iterated: Collection[str]) -> tuple[str, ...]:
        """For the profile of ``name``, when all is over and these were ``iterated``."""
        other = self._lost.get(name)
        if other is None or other in iterated:
            return ()
        note = (
            f"in_order=False, as {other} asks for it, was lost: that loader was never iterated, "
            "but this one in its place, which keeps the order. Pass it to what makes this one; "
            "pipeprof run --set in_order=false tries it."
        )
        return (note,)
