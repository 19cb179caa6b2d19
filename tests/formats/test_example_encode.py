"""Records written column by column: the bytes that protobuf writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.tfrecord.encoder import encode
from pipeprof.formats.tfrecord.example import Example, kind_of
from pipeprof.formats.types import is_list
from tests.contracts.format_contract import EVERY_TYPE, SMALL, tables

ABSENT = {"int64_list": 0, "float_list": float("nan"), "bytes_list": b""}


def by_protobuf(batch: pa.RecordBatch) -> list[bytes]:
    rows = [Example() for _ in range(batch.num_rows)]
    for field, column in zip(batch.schema, batch.columns, strict=True):
        kind = kind_of(field)
        for row, cell in zip(rows, column.to_pylist(), strict=True):
            feature = getattr(row.features.feature[field.name], kind)
            cells = cell if is_list(field.type) and cell is not None else [cell]
            values = [ABSENT[kind] if each is None else each for each in cells]
            if cell is not None and values:
                feature.value.extend([_stored(value) for value in values])
            else:
                feature.SetInParent()
    return [row.SerializeToString(deterministic=True) for row in rows]


def _stored(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value.encode() if isinstance(value, str) else value


def test_every_type() -> None:
    for table in (EVERY_TYPE, SMALL, SMALL.slice(3, 2), EVERY_TYPE.slice(1)):
        for batch in table.to_batches():
            assert encode(batch) == by_protobuf(batch)


def test_numbers_of_every_length() -> None:
    edges = [0, *(2**bit + more for bit in range(7, 63, 7) for more in (-1, 0, 1)), 2**63 - 1]
    batch = pa.record_batch({"n": edges + [-each - 1 for each in edges]})
    assert encode(batch) == by_protobuf(batch)
    lists = pa.record_batch({"a": [edges, [], None, [5], edges * 9]})
    assert encode(lists) == by_protobuf(lists)


def test_values_so_long_that_all_lengths_before_them_grow() -> None:
    sizes = [0, 1, *range(100, 140), *range(16_350, 16_400, 7), 70_000]
    batch = pa.record_batch(
        {"key" * 40: [b"x" * size for size in sizes], "f": [[0.5] * (size % 99) for size in sizes]}
    )
    batch = batch.set_column(1, "f", pc.cast(batch.column(1), pa.list_(pa.float32())))
    assert encode(batch) == by_protobuf(batch)


def test_a_name_with_which_others_begin() -> None:
    batch = pa.record_batch({name: [1] for name in ("ab", "a", "abc", "b", "é", "")})
    assert encode(batch) == by_protobuf(batch)


def test_what_is_beneath_a_null_and_outside_of_a_slice_is_not_written() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 6], pa.int32()), pa.array(range(6)), mask=pa.array([False, True, False])
    )
    batch = pa.record_batch({"l": lists, "s": ["a", None, "c"]})
    assert encode(batch) == by_protobuf(batch)
    assert encode(batch.slice(1, 2)) == by_protobuf(batch)[1:]


def test_no_rows() -> None:
    assert encode(pa.RecordBatch.from_pylist([], SMALL.schema)) == []


def test_a_number_that_no_example_holds_names_its_column() -> None:
    with pytest.raises(SchemaMismatch, match="'x' is uint64"):
        encode(pa.record_batch({"x": pa.array([2**63], pa.uint64())}))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_any_table(table: pa.Table) -> None:
    for batch in table.to_batches():
        assert encode(batch) == by_protobuf(batch)
