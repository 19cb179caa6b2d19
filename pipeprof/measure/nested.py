"""A batch as a tree: what can be moved to a device, within mappings, sequences and data classes.

A leaf is a tensor, or an object that knows how to move itself: its class has a method ``to``.
Anything else without children, such as a string or a numpy array, is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

import torch

_PLAIN = (str, bytes, bytearray, int, float, type(None))


def mapped(item: Any, change: Callable[[Any], Any]) -> Any:
    """``item`` with every leaf changed, of the same types throughout. What holds no changed leaf
    is not copied."""
    if isinstance(item, torch.Tensor):
        return change(item)
    if isinstance(item, _PLAIN):
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
    """All tensors in ``item``, in order; ``None`` when it has an object that hides what it holds:
    one that moves itself and is no mapping, sequence or data class."""
    if isinstance(item, torch.Tensor):
        return [item]
    if isinstance(item, _PLAIN):
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
    # of the class: a dictionary with attribute access may well have a key "to"
    return callable(getattr(type(item), "to", None))


def _children(item: Any) -> list[Any] | None:
    if isinstance(item, Mapping):
        return list(item.values())
    if isinstance(item, (tuple, MutableSequence)):
        return list(item)
    if is_dataclass(item) and not isinstance(item, type):
        return [getattr(item, name) for name in _names(item)]
    return None


def _names(item: Any) -> list[str]:
    """Of the fields that have a value."""
    return [field.name for field in fields(item) if hasattr(item, field.name)]


def _rebuilt(item: Any, children: list[Any]) -> Any:
    """As ``item``, with other ``children``: a copy keeps what a subclass has besides them."""
    if isinstance(item, tuple):
        # a named tuple's own constructor takes its fields one by one
        return item._make(children) if hasattr(item, "_make") else type(item)(children)
    if isinstance(item, Mapping) and not isinstance(item, MutableMapping):
        return type(item)(dict(zip(item, children, strict=True)))  # type: ignore[call-arg]
    clone: Any = copy(item)
    if isinstance(item, MutableMapping):
        clone.update(zip(item, children, strict=True))
    elif isinstance(item, MutableSequence):
        for at, child in enumerate(children):
            clone[at] = child
    else:
        for name, child in zip(_names(item), children, strict=True):
            object.__setattr__(clone, name, child)  # also where it is frozen
    return clone
