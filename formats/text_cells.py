"""Columns as text and back, for CSV and tar archives: lists are JSON, bytes in text are base64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.base64_text import from_base64, to_base64
from pipeprof.formats.types import convert, first_line, format_type, is_list

_INTEGER = r"-?[0-9]+"
_NUMBER = r"(?:-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?inf|nan|null)"
NULLS = ("", "NA", "N/A", "null", "NULL", "None")
"""Texts that mean null in a column that is not of strings."""


def read_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type to ask Arrow's reader for; `from_text` converts it to ``dtype``."""
    if is_list(dtype) or pa.types.is_binary(dtype):
        return pa.string()
    return pa.float32() if pa.types.is_float16(dtype) else dtype


def infer(text: pa.Array, guess: pa.DataType) -> pa.DataType:
    """Return the type of a column. It follows from the column's first fields as text, and from
    Arrow's guess at them."""
    if pa.types.is_int64(guess) or pa.types.is_boolean(guess):
        return guess
    filled = text.filter(pc.invert(pc.is_in(text, value_set=pa.array(NULLS))))
    if pa.types.is_float64(guess):
        # Arrow falls back to float64 for integers beyond int64, which would blur identifiers
        return pa.uint64() if _all_match(filled, "[0-9]+") else pa.float32()
    for item, dtype in ((_INTEGER, pa.int64()), (_NUMBER, pa.float32())):
        if _all_match(filled, rf"\s*\[\s*(?:{item}\s*(?:,\s*{item}\s*)*)?\]\s*"):
            return pa.list_(dtype)
    return pa.string()


def from_text(column: str, read: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    """Convert a column that Arrow read as `read_type` to ``dtype``. Raises `SchemaMismatch`."""
    if read.type == dtype:
        return read
    if is_list(dtype):
        lists = [read_lists(column, array, dtype.value_type) for array in read.chunks]
        return pa.chunked_array([convert(column, each, dtype) for each in lists], dtype)
    if pa.types.is_binary(dtype):
        return pa.chunked_array([_each(column, read, from_base64, dtype)], dtype)
    return convert(column, read, dtype)


def parse_text(column: str, text: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the values that texts hold, each a number, a truth value or a list. Raises
    `SchemaMismatch`."""
    if pa.types.is_string(dtype):
        return text
    if is_list(dtype):
        lists = read_lists(column, text.fill_null(""), dtype.value_type)
        return convert(column, lists, dtype)
    text = pc.utf8_trim_whitespace(text)
    text = pc.if_else(pc.is_in(text, value_set=pa.array(NULLS)), None, text)
    return convert(column, convert(column, text, read_type(dtype)), dtype)


def parse_bytes(column: str, cells: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the values that bytes hold as text; the bytes themselves where ``dtype`` is binary.
    Raises `SchemaMismatch`."""
    if pa.types.is_binary(dtype):
        return cells
    try:
        text = cells.cast(pa.string())
    except pa.ArrowException:
        raise SchemaMismatch(
            f"the values of {column!r} are not text in UTF-8, so they cannot be read as "
            f"{format_type(dtype)}; read them as binary."
        ) from None
    return parse_text(column, text, dtype)


def to_text(column: str, array: pa.Array) -> pa.Array:
    """Return the fields of a column as large_string, not yet quoted; a null stays null."""
    dtype = array.type
    if not is_list(dtype):
        if pa.types.is_binary(dtype):
            cells = (None if v is None else to_base64(v) for v in array.to_pylist())
            return pa.array(cells, pa.large_string())
        return convert(column, array, pa.large_string())
    if pa.types.is_string(dtype.value_type):
        lists = (None if v is None else orjson.dumps(v).decode() for v in array.to_pylist())
        return pa.array(lists, pa.large_string())
    lists = convert(column, array, pa.list_(dtype.value_type))
    flat = to_text(column, lists.flatten()).cast(pa.string())
    if pa.types.is_binary(dtype.value_type):
        flat = joined(flat, before='"', after='"')
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(pc.list_value_length(lists).fill_null(0), out=offsets[1:])
    texts = pa.ListArray.from_arrays(pa.array(offsets), flat.fill_null("null"))
    texts = joined(pc.binary_join(texts, ","), before="[", after="]")
    return pc.if_else(lists.is_valid(), texts, None).cast(pa.large_string())


def joined(text: pa.Array, before: str, after: str) -> pa.Array:
    kind = text.type
    parts = (pa.scalar(before, kind), text, pa.scalar(after, kind), pa.scalar("", kind))
    return pc.binary_join_element_wise(*parts)


def _all_match(text: pa.Array, pattern: str) -> bool:
    """Return whether there are fields, and all of them match ``pattern``."""
    matches = pc.match_substring_regex(text, f"^(?:{pattern})$")
    return len(text) > 0 and bool(pc.all(matches).as_py())


def read_lists(column: str, text: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the lists that fields like ``[1,2,3]`` hold."""
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        cells = _each(column, text, orjson.loads, pa.list_(dtype))
        try:
            lists = pa.array(cells, pa.list_(pa.string()))
        except pa.ArrowException:
            raise _wrong(column, "a list that is not of text", pa.list_(dtype)) from None
        if pa.types.is_string(dtype):
            return lists
        values = pa.array(_each(column, lists.values, from_base64, dtype), dtype)
        return pa.ListArray.from_arrays(lists.offsets, values, mask=lists.is_null())
    absent = pc.is_in(text, value_set=pa.array(NULLS))
    text = pc.if_else(absent, "[]", pc.utf8_trim_whitespace(text))
    shaped = pc.match_substring_regex(text, r"^\[[^\[\]]*\]$")
    if not pc.all(shaped, min_count=0).as_py():
        raise _wrong(column, repr(text.filter(pc.invert(shaped))[0].as_py()[:80]), pa.list_(dtype))
    inside = pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(text, 1, -1))
    items = pc.split_pattern(inside, ",")
    items = pc.if_else(pc.equal(inside, ""), pa.scalar([], items.type), items)
    flat = pc.utf8_trim_whitespace(items.flatten())
    flat = pc.if_else(pc.equal(flat, "null"), None, flat)
    values = convert(column, convert(column, flat, read_type(dtype)), dtype)
    return pa.ListArray.from_arrays(items.offsets, values, mask=absent)


def _each(
    column: str, text: pa.Array, read: Callable[[str], Any], dtype: pa.DataType
) -> Sequence[Any]:
    """Apply a Python function to each field; an empty field becomes null."""
    try:
        return [read(cell) if cell else None for cell in text.to_pylist()]
    except ValueError as error:
        raise _wrong(column, first_line(error), dtype) from None


def _wrong(column: str, what: str, dtype: pa.DataType) -> SchemaMismatch:
    hint = "base64 text" if pa.types.is_binary(dtype) else "a JSON list" if is_list(dtype) else ""
    return SchemaMismatch(
        f"column {column!r} holds {what}, which is not {format_type(dtype)} ({hint}); "
        f"say what it is with types, e.g. types={{{column!r}: 'string'}}."
    )
