"""Generate arbitrary values of the types of `pipeprof.model` for hypothesis."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=8),
    NoneType: st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Every field filled, the optional ones too; numbers finite; collections of up to two."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{name: values(hint) for name, hint in hints.items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, inner))
    if origin is Mapping:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if origin is tuple and inner[1:] == (...,):
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, inner))
    raise NotImplementedError(f"no strategy for {kind}")
