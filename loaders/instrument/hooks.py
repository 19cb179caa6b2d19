"""Set attributes on foreign objects, and restore them."""

from __future__ import annotations

import weakref
from typing import Any


class Hooks:
    """Attributes set on objects in place of the original ones; no object is kept alive."""

    def __init__(self) -> None:
        self._on = False
        self._hooks: list[tuple[Any, str, Any, Any]] = []
        """Weak reference to the owner, name, hook, and the instance's own value or `_ABSENT`."""

    def add(self, owner: Any, name: str, hook: Any) -> None:
        """Set ``owner.name`` to ``hook`` from the next `set` on."""
        self._hooks.append((weakref.ref(owner), name, hook, vars(owner).get(name, _ABSENT)))

    def set(self, on: bool) -> None:
        """Put all hooks in place, or restore the original attributes."""
        if on == self._on:
            return
        self._on = on
        for reference, name, hook, original in self._hooks:
            owner = reference()
            if owner is None:
                continue
            if on or original is not _ABSENT:
                setattr(owner, name, hook if on else original)
            else:
                delattr(owner, name)


_ABSENT = object()
