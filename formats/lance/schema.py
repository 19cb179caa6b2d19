"""The Arrow types of a Lance file's columns, from the names by which Lance stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.types import SCALARS

_MOST_DEPTH = 64
_PLAIN = SCALARS | {
    "null": pa.null(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
}
_UNITS = ("s", "ms", "us", "ns")
_UNKNOWN = pa.struct([])
"""Stands for a type that has no tensor form, whatever it is."""


def read_schema(fields: Sequence[Any]) -> pa.Schema:
    """Return the columns of a file. Raises `CorruptData`.

    Args:
        fields: All fields, nested ones too. Each names its parent, columns the parent -1.
    """
    children: dict[int, list[Any]] = {}
    for field in fields:
        children.setdefault(field.parent_id, []).append(field)
    return pa.schema([_field(each, children, 0) for each in children.get(-1, [])])


def _field(field: Any, children: dict[int, list[Any]], depth: int) -> pa.Field:
    if depth > _MOST_DEPTH or field.id == field.parent_id:
        raise CorruptData("its columns contain themselves; the schema is damaged.")
    inner = [_field(each, children, depth + 1) for each in children.get(field.id, [])]
    return pa.field(field.name, _type(field.logical_type, inner), field.nullable)


def _type(name: str, inner: Sequence[pa.Field]) -> pa.DataType:
    kind, _, rest = name.partition(":")
    if name in _PLAIN:
        return _PLAIN[name]
    if kind.partition(".")[0] == "struct":
        return pa.struct(inner)
    if kind.partition(".")[0] in ("list", "large_list") and len(inner) == 1:
        return (pa.large_list if kind.startswith("large") else pa.list_)(inner[0])
    if kind == "fixed_size_list":
        value, _, size = rest.rpartition(":")
        fits = size.isdigit() and 0 < int(size) < 2**31
        return pa.list_(_type(value, ()), int(size)) if fits else _UNKNOWN
    if kind == "fixed_size_binary" and rest.isdigit() and int(rest) < 2**31:
        return pa.binary(int(rest))
    return _of_unit(kind, rest) or _UNKNOWN


def _of_unit(kind: str, rest: str) -> pa.DataType | None:
    """Return a type of time or a decimal; ``None`` for any other."""
    unit, _, zone = rest.partition(":")
    if kind == "time" and unit in _UNITS:
        return (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
    if kind == "duration" and unit in _UNITS:
        return pa.duration(unit)
    if kind == "timestamp" and unit in _UNITS:
        return pa.timestamp(unit, None if zone in ("", "-") else zone)
    numbers = rest.split(":")
    if kind == "decimal" and len(numbers) == 3 and all(each.isdigit() for each in numbers):
        bits, precision, scale = map(int, numbers)
        make, most = (pa.decimal256, 76) if bits == 256 else (pa.decimal128, 38)
        return make(precision, scale) if 0 < precision <= most and scale <= precision else None
    return None
