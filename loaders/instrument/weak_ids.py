"""Keep values for objects of any kind, for as long as these exist."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class WeakIds(Generic[Value]):
    """Values by the identity of an object, which need not be hashable, and is not kept alive."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def set(self, thing: Any, value: Value) -> None:
        key = id(thing)
        self._kept[key] = weakref.ref(thing, lambda _: self._kept.pop(key, None)), value

    def get(self, thing: Any) -> Value | None:
        kept = self._kept.get(id(thing))
        return kept[1] if kept is not None and kept[0]() is thing else None
