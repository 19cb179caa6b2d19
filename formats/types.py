"""The column types: their names, and what each format stores them as.

Rows leave every format as `pyarrow.RecordBatch` of these types and no others:

    type            CSV                     Parquet, Arrow              TFRecord
    bool            true / false            BOOLEAN                     int64_list ¹
    int8 … uint64   digits: int64 ²         INT32, INT64: as declared   int64_list: int64
    float32         decimals: float32       FLOAT                       float_list: float32
    float16 float64 decimals ¹              FLOAT16, DOUBLE, decimal    float_list ¹ ³
    string          any other text          STRING                      bytes_list ¹
    binary          base64 text ¹           BYTE_ARRAY, fixed too       bytes_list: binary
    list<T>         [1,2,3] (JSON)          LIST                        several values
    list<T>[k]      [1,2,3] (JSON) ¹        fixed-size list             several values ¹
    null            empty, NA, null ⁴       null                        no value

    ¹ by ``types`` only; otherwise what the same row or column says without it.
    ² uint64 where the first rows hold an integer beyond int64.
    ³ written from float16 only: a float_list would cut a float64 short, so that is refused.
    ⁴ in a string column such text stays as it is: CSV cannot tell a null from an empty string.

JSON Lines have the types of CSV as JSON's own values: true, numbers, text, arrays, null.

Where two formats overlap they agree, but for two losses of TFRecord: a string is bytes there, and
an empty list is a null (both become the same tensor). Parquet's dictionary-encoded columns are
their values; timestamps, dates, times and durations are the int64 count of their unit. Structs,
maps and nested lists have no tensor, nor have lists of text: asking for one is an error. Where no
columns are asked for, they are left out, and a warning names them. ``objects=True`` hands them on.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import SchemaMismatch, UsageError

SCALARS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}
_NAMES = {dtype: name for name, dtype in SCALARS.items()}
_LIST = re.compile(r"list<\s*(\w+)\s*>(?:\[([1-9][0-9]*)\])?")


def parse_type(text: str) -> pa.DataType:
    """Return the type that ``"int64"``, ``"list<float32>"`` or ``"list<float32>[8]"`` names. Raises
    `UsageError`."""
    name = text.strip()
    if name in SCALARS:
        return SCALARS[name]
    match = _LIST.fullmatch(name)
    if match is None or match[1] not in SCALARS:
        raise UsageError(
            f"{text!r} is not a column type; write one of {', '.join(SCALARS)}, "
            "list<T> of them, or list<T>[k] for lists of k values."
        )
    return pa.list_(SCALARS[match[1]], int(match[2]) if match[2] else -1)


def format_type(dtype: pa.DataType) -> str:
    """Return the name that `parse_type` reads; for a type outside the table, Arrow's own name."""
    if pa.types.is_fixed_size_list(dtype):
        return f"list<{format_type(dtype.value_type)}>[{dtype.list_size}]"
    if pa.types.is_list(dtype):
        return f"list<{format_type(dtype.value_type)}>"
    return _NAMES.get(dtype, str(dtype))


def is_list(dtype: pa.DataType) -> bool:
    """Return whether the type is a list, of any or of a fixed length."""
    return bool(pa.types.is_list(dtype) or pa.types.is_fixed_size_list(dtype))


def plain_type(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type of the table above as which an Arrow type is read; ``None`` if there is
    none."""
    is_a = pa.types
    if dtype in _NAMES:
        return dtype
    if is_a.is_dictionary(dtype):
        return plain_type(dtype.value_type)
    if isinstance(dtype, pa.BaseExtensionType):
        return plain_type(dtype.storage_type)
    if is_a.is_large_string(dtype) or is_a.is_string_view(dtype):
        return pa.string()
    if is_a.is_large_binary(dtype) or is_a.is_fixed_size_binary(dtype):
        return pa.binary()
    if is_a.is_decimal(dtype):
        return pa.float64()
    if is_a.is_temporal(dtype) and not is_a.is_interval(dtype):
        return pa.int64()
    if is_list(dtype) or is_a.is_large_list(dtype):
        value = plain_type(dtype.value_type)
        fixed = is_a.is_fixed_size_list(dtype)
        some = not fixed or dtype.list_size > 0  # a damaged footer may say any number
        if value is not None and not is_list(value) and some:
            return pa.list_(value, dtype.list_size if fixed else -1)
    return None


def has_tensor(dtype: pa.DataType) -> bool:
    """Return whether a type of the table above has a tensor form; lists of text have none."""
    if not is_list(dtype):
        return dtype in _NAMES
    value = dtype.value_type
    return value in _NAMES and value not in (pa.string(), pa.binary())


def no_tensor(field: pa.Field, others: Sequence[str]) -> SchemaMismatch:
    """Return the error for a column that is asked for and has no tensor form. ``others`` have."""
    instead = (
        f"ask for other columns, e.g. columns={[*others[:3]]}" if others else "no column has one"
    )
    return SchemaMismatch(
        f"column {field.name!r} is {format_type(field.type)}, which has no tensor; {instead}, or "
        "open the data set with objects=True."
    )


def choose_columns(
    stored: pa.Schema, columns: Sequence[str] | None, types: Mapping[str, pa.DataType]
) -> tuple[pa.Schema, tuple[pa.Field, ...]]:
    """Return the columns that are asked for with their types, and those that are left out, because
    a type outside the table above is stored. Raises `SchemaMismatch`."""
    fields, left_out = list[pa.Field](), list[pa.Field]()
    check_types(types, stored.names)
    for name in select(stored.names, columns):
        dtype = types.get(name, plain_type(stored.field(name).type))
        if dtype is not None:
            fields.append(pa.field(name, dtype))
        elif columns is None:
            left_out.append(stored.field(name))
        else:
            others = [each.name for each in stored if plain_type(each.type) is not None]
            raise no_tensor(stored.field(name), others)
    return pa.schema(fields), tuple(left_out)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, an extension's as what it stores."""
    # combining a single chunk would copy it
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def convert(column: str, array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Convert ``array`` to ``dtype``, exactly or not at all. Raises `SchemaMismatch`."""
    if array.type == dtype:
        return array
    if plain_type(dtype) is None:  # Arrow casts a struct to any other, and loses fields
        raise SchemaMismatch(
            f"column {column!r} is {format_type(array.type)}, not {format_type(dtype)}."
        )
    if array.null_count == len(array):  # where Arrow's cast to fixed lists reads beyond the values
        return pa.nulls(len(array), dtype)
    try:
        if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
            array = pc.cast(array, pa.int32())
        return pc.cast(array, dtype)
    except (pa.ArrowException, ValueError) as error:
        raise SchemaMismatch(
            f"column {column!r} is {format_type(array.type)} and cannot be read as "
            f"{format_type(dtype)} ({first_line(error)})."
        ) from None


def convert_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of ``schema``, each as `convert` gives it. Raises `SchemaMismatch`."""
    arrays = [
        convert(field.name, one_array(pa.chunked_array([batch.column(field.name)])), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def select(available: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """Return the columns to read, in the order asked for; all of them if ``columns`` is ``None``.
    Raises `SchemaMismatch` for a missing column, or a name that two columns share."""
    for names, what in ((available, "in the file"), (columns or (), "asked for")):
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise SchemaMismatch(f"column {twice!r} is {what} twice; give each its own name.")
    if columns is None:
        return list(available)
    if not columns:
        raise SchemaMismatch(f"no columns are asked for; ask for some of {_listed(available)}.")
    there = set(available)
    for name in columns:
        if name not in there:
            raise unknown_column(name, available)
    return list(columns)


def unknown_column(name: str, available: Sequence[str]) -> SchemaMismatch:
    """Return the error for a missing column."""
    close = difflib.get_close_matches(name, available, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return SchemaMismatch(f"there is no column {name!r}{hint} There are {_listed(available)}.")


def check_types(types: Mapping[str, pa.DataType], available: Sequence[str]) -> None:
    """Raise `SchemaMismatch` when ``types`` names a missing column."""
    for name in types:
        if name not in available:
            raise unknown_column(name, available)


def check_batch(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    """Raise `SchemaMismatch` unless ``batch`` has exactly the encoder's columns."""
    if not batch.schema.equals(schema):
        raise SchemaMismatch(
            f"the encoder writes columns {_described(schema)}, and was given "
            f"{_described(batch.schema)}."
        )


def first_line(error: Any) -> str:
    """Return the first line of a library's error, short enough for a sentence."""
    text = (str(error).splitlines() or [""])[0].rstrip(".")
    return text if len(text) <= 200 else text[:200] + "…"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:20]) or "none"
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown


def _described(schema: pa.Schema) -> str:
    return _listed([f"{field.name}: {format_type(field.type)}" for field in schema])
