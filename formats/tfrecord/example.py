"""Read `tf.train.Example` without TensorFlow: its protobuf types, and rows as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import message, unknown_fields

from pipeprof.errors import CorruptData, SchemaMismatch
from pipeprof.formats.protobuf import message_types
from pipeprof.formats.types import convert, format_type, is_list

KINDS = {
    "int64_list": pa.int64(),
    "float_list": pa.float32(),
    "bytes_list": pa.binary(),
}


_FEATURE_LISTS = 2
"""The field that only a SequenceExample has; its first field is that of an Example."""


_PROTO = """
name: "pipeprof/example.proto" package: "tensorflow" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 type: TYPE_BYTES label: LABEL_REPEATED } }
message_type { name: "FloatList"
  field { name: "value" number: 1 type: TYPE_FLOAT label: LABEL_REPEATED } }
message_type { name: "Int64List"
  field { name: "value" number: 1 type: TYPE_INT64 label: LABEL_REPEATED } }
message_type { name: "Feature"
  oneof_decl { name: "kind" }
  field { name: "bytes_list" number: 1 type_name: ".tensorflow.BytesList" oneof_index: 0 }
  field { name: "float_list" number: 2 type_name: ".tensorflow.FloatList" oneof_index: 0 }
  field { name: "int64_list" number: 3 type_name: ".tensorflow.Int64List" oneof_index: 0 } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type_name: ".tensorflow.Feature" label: LABEL_OPTIONAL } }
  field { name: "feature" number: 1 label: LABEL_REPEATED
    type_name: ".tensorflow.Features.FeatureEntry" } }
message_type { name: "Example"
  field { name: "features" number: 1 type_name: ".tensorflow.Features" } }
"""


Example, Feature = message_types(_PROTO, "tensorflow.Example", "tensorflow.Feature")


def infer(payloads: Iterable[bytes]) -> dict[str, pa.DataType]:
    """Return the columns of these records by name, sorted, as protobuf keeps no order of its own.

    A column is scalar when no record holds more than one value. Raises `CorruptData`,
    `SchemaMismatch`.
    """
    kinds: dict[str, str] = {}
    most: dict[str, int] = {}
    for number, features in enumerate(_parse(payloads, 0)):
        for name, feature in features.items():
            kind = feature.WhichOneof("kind")
            if kind is None:
                continue
            if kinds.setdefault(name, kind) != kind:
                raise _contradiction(name, number, kind, kinds[name])
            most[name] = max(most.get(name, 0), len(getattr(feature, kind).value))
    return {
        name: KINDS[kind] if most[name] <= 1 else pa.list_(KINDS[kind])
        for name, kind in sorted(kinds.items())
    }


def is_example(payload: bytes) -> bool:
    """Return whether protobuf can parse the payload as an Example."""
    try:
        Example.FromString(payload)
    except message.DecodeError:
        return False
    return True


def is_sequence(payload: bytes) -> bool:
    """Return whether the payload, which parses as an Example, is a SequenceExample with more
    fields."""
    fields = unknown_fields.UnknownFieldSet(Example.FromString(payload))
    return any(field.field_number == _FEATURE_LISTS for field in fields)


def decode(payloads: Iterable[bytes], schema: pa.Schema, first: int) -> pa.RecordBatch:
    """Decode records into columns. ``first`` is the number of the first one in its object. Raises
    `CorruptData`, `SchemaMismatch`."""
    rows = _parse(payloads, first)
    columns = [column(rows, field, first) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def kind_of(field: pa.Field) -> str:
    """Return the kind of list that stores this column. Raises `SchemaMismatch` where none can."""
    dtype = field.type.value_type if is_list(field.type) else field.type
    if pa.types.is_integer(dtype) or pa.types.is_boolean(dtype):
        return "int64_list"
    if pa.types.is_float16(dtype) or pa.types.is_float32(dtype):
        return "float_list"
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        return "bytes_list"
    raise SchemaMismatch(
        f"column {field.name!r} is {format_type(field.type)}, which TFRecord cannot hold without "
        "loss; cast it to int64, float32, binary or lists of them first."
    )


def _parse(payloads: Iterable[bytes], first: int) -> list[Any]:
    rows = []
    parse = Example.FromString
    try:
        for payload in payloads:
            rows.append(parse(payload).features.feature)  # noqa: PERF401
    except message.DecodeError:
        raise CorruptData(
            f"record {first + len(rows)} is not a tf.train.Example; other messages in TFRecord "
            "files are not read."
        ) from None
    return rows


def column(rows: Sequence[Any], field: pa.Field, first: int) -> pa.Array:
    """Return one column of all rows, from its values in one flat array and the count of each
    row."""
    name = field.name
    kind = next((k for row in rows if name in row and (k := row[name].WhichOneof("kind"))), None)
    if kind is None:
        return pa.nulls(len(rows), field.type)
    filled: list[Any] = []
    counts = np.zeros(len(rows), np.int64)
    for index, row in enumerate(rows):
        feature = row.get(name)
        if feature is None:
            continue
        values = getattr(feature, kind).value
        if values:
            counts[index] = len(values)
            filled.append(values)
        elif feature.WhichOneof("kind") not in (None, kind):
            raise _contradiction(name, first + index, feature.WhichOneof("kind"), kind)
    return shape(_flat(filled, kind, int(counts.max())), counts, field, first)


def _flat(filled: Sequence[Any], kind: str, most: int) -> pa.Array:
    """Return the values of all rows that have some. No row has more than ``most``."""
    if kind == "bytes_list" or most == 1:
        return pa.array([value for values in filled for value in values], KINDS[kind])
    if not filled:
        return pa.array([], KINDS[kind])
    dtype = np.int64 if kind == "int64_list" else np.float32
    return pa.array(np.concatenate([np.array(values, dtype) for values in filled]))


def shape(values: pa.Array, counts: np.ndarray[Any, Any], field: pa.Field, first: int) -> pa.Array:
    """Turn flat values and their counts into a scalar, fixed or ragged column. A row without values
    is null."""
    dtype, absent = field.type, counts == 0
    expected = dtype.list_size if pa.types.is_fixed_size_list(dtype) else 1
    if not pa.types.is_list(dtype):
        wrong = np.flatnonzero(~absent & (counts != expected))
        if wrong.size:
            row = int(wrong[0])
            raise SchemaMismatch(
                f"record {first + row} holds {counts[row]} values of column {field.name!r} where "
                f"{expected} was expected; say that their number varies with "
                f"types={{{field.name!r}: 'list<{format_type(values.type)}>'}}."
            )
    if not is_list(dtype):
        if absent.any():
            values = values.take(pa.array(np.cumsum(counts) - 1, mask=absent))
        return convert(field.name, values, dtype)
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    mask = pa.array(absent) if absent.any() else None
    lists = pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)
    return convert(field.name, lists, dtype)


def _contradiction(name: str, number: int, found: str, before: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"record {number} holds column {name!r} as {found} where records before it hold "
        f"{before}; leave the column out with columns, or write it with one type."
    )
