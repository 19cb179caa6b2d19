"""Find what a loader is made of, where user code stands around the library's object.

Loops often iterate ``map(f, dataset)``, a generator function around a pipeline, or an object that
holds one.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import chain, islice
from types import CoroutineType, GeneratorType
from typing import Any, Final

_DEPTH: Final = 3
_MOST_EACH: Final = 64
_MOST: Final = 4096
"""Objects that are looked at in each one, and in all. Data may be large; loaders are not."""
_LAZY: Final = (map, filter, zip, enumerate, islice, chain)


def contents_of(thing: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield ``thing``, and what it holds, the outermost first. No code of the objects is run."""
    level, visited = [thing], {id(thing)}
    for _ in range(depth + 1):
        yield from level
        inner = []
        for each in level:
            for part in islice(_parts(each), _MOST_EACH):
                if id(part) not in visited and len(visited) < _MOST:
                    visited.add(id(part))
                    inner.append(part)
        level = inner


def frame_variables(running: Any) -> dict[str, Any]:
    """Return the local variables of a generator or coroutine that has not ended."""
    frame = getattr(running, "gi_frame", None) or getattr(running, "cr_frame", None)
    if frame is None:
        return {}
    variables = frame.f_locals
    found = dict(variables)
    if isinstance(variables, dict):  # before Python 3.13 a copy, which would keep batches alive
        variables.clear()
    return found


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, _LAZY):
        yield from gc.get_referents(thing)
    elif isinstance(thing, (tuple, list)):
        yield from thing
    elif isinstance(thing, GeneratorType):
        yield from frame_variables(thing).values()
        yield thing.gi_yieldfrom
    elif not isinstance(thing, (type, CoroutineType)) and type(thing).__module__ != "builtins":
        attributes = _attributes(thing)
        yield from attributes.values()


def _attributes(thing: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}
