"""Walk a batch as a tree of mappings, sequences and data classes.

A leaf is a tensor, or an object that can move itself: its class has a method ``to``. Anything else
without children, such as a string or a NumPy array, is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch

_VALUES = (str, bytes, bytearray, int, float, type(None))


def mapped(item: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``item`` with every leaf changed, and with the same types throughout. A container
    without a changed leaf is not copied."""
    if isinstance(item, torch.Tensor):
        return change(item)
    if isinstance(item, _VALUES):
        return item
    if _moves_itself(item):
        return change(item)
    before = _children(item)
    if before is None:
        return item
    after = [mapped(child, change) for child in before]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return item
    return _rebuilt(item, after)


def tensors_in(item: Any) -> list[torch.Tensor] | None:
    """Return all tensors in ``item``, in order, or ``None`` when an object hides its tensors. Such
    an object moves itself and is no mapping, sequence or data class."""
    if isinstance(item, torch.Tensor):
        return [item]
    if isinstance(item, _VALUES):
        return []
    children = _children(item)
    if children is None:
        return None if _moves_itself(item) else []
    found: list[torch.Tensor] = []
    for child in children:
        tensors = tensors_in(child)
        if tensors is None:
            return None
        found += tensors
    return found


def _moves_itself(item: Any) -> bool:
    # the class is asked: a dictionary with attribute access may have a key "to"
    return callable(getattr(type(item), "to", None))


def _children(item: Any) -> list[Any] | None:
    if isinstance(item, Mapping):
        return list(item.values())
    if isinstance(item, (tuple, MutableSequence)):
        return list(item)
    if is_dataclass(item) and not isinstance(item, type):
        return [getattr(item, name) for name in _set_fields(item)]
    return None


def _set_fields(item: Any) -> list[str]:
    """Return the names of a data class's fields that have a value."""
    return [field.name for field in fields(item) if hasattr(item, field.name)]


def _rebuilt(item: Any, children: list[Any]) -> Any:
    """Return a copy of ``item`` with other ``children``, which keeps a subclass's attributes."""
    if isinstance(item, tuple):
        # a named tuple's own constructor takes its fields one by one
        return item._make(children) if hasattr(item, "_make") else type(item)(children)
    if isinstance(item, Mapping) and not isinstance(item, MutableMapping):
        return type(item)(dict(zip(item, children, strict=True)))  # type: ignore[call-arg]
    clone: Any = copy(item)
    if isinstance(item, MutableMapping):
        clone.update(zip(item, children, strict=True))
    elif isinstance(item, MutableSequence):
        for index, child in enumerate(children):
            clone[index] = child
    else:
        for name, child in zip(_set_fields(item), children, strict=True):
            object.__setattr__(clone, name, child)  # it may be frozen
    return clone
