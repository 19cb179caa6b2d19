"""Replace methods of single objects for a while."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Any

from pipeprof.loaders.instrument.monkeypatch import Method
from pipeprof.measure.pauses import announce_phase


class InstancePatches:
    """Methods that are replaced on an object, and not on its class."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str]] = []

    def replace(self, thing: Any, name: str, wrapper: Callable[[Method], Method]) -> bool:
        """Replace the method ``name`` of ``thing`` by ``wrapper(method)``. Return False where it
        was replaced before."""
        if name in vars(thing):
            return False
        setattr(thing, name, wrapper(getattr(thing, name)))
        self._replaced.append((thing, name))
        return True

    def undo(self) -> None:
        """Put all methods back."""
        while self._replaced:
            thing, name = self._replaced.pop()
            vars(thing).pop(name, None)


def as_phase(method: Method, name: Callable[[], str]) -> Method:
    """Return ``method``, each call of which is a pause of the training that ``name()`` names."""

    @wraps(method)
    def timed(*args: Any, **kwargs: Any) -> Any:
        phase, begin_s = name(), perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            announce_phase(phase, begin_s)

    return timed
