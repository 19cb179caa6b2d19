"""Records that are alike but for small values: what protobuf gives, or nothing at all."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from pipeprof.errors import SchemaMismatch
from pipeprof.formats import example, example_alike
from pipeprof.formats.example_encode import encode
from pipeprof.formats.framing import Deframer, Records, frame

RNG = np.random.default_rng(0)
FLOATS = pa.record_batch(
    {
        "a": RNG.normal(size=50).astype(np.float32),
        "b": np.array([np.nan, np.inf, -0.0, 1e-45, 7] * 10, np.float32),
        "label": RNG.integers(0, 128, 50),
        "other": RNG.integers(0, 2, 50),
    }
)


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    """Of records with the same names, in tests before."""
    example_alike._known.cache_clear()


def alike(payloads: list[bytes], schema: pa.Schema) -> pa.RecordBatch | None:
    return example_alike.decode(Records.of(payloads), schema)


def same(found: pa.RecordBatch | None, payloads: list[bytes], schema: pa.Schema) -> bool:
    expected = example.decode(payloads, schema, 0)
    return found is not None and repr(found.to_pydict()) == repr(expected.to_pydict())


def test_all_and_some_columns_in_any_order() -> None:
    payloads = encode(FLOATS)
    for names in (["a", "b", "label", "other"], ["other", "a"], ["label"]):
        schema = pa.schema([FLOATS.schema.field(name) for name in names])
        for _ in range(2):  # the second time its layout is known
            assert same(alike(payloads, schema), payloads, schema)


def test_records_are_read_where_they_lie_in_their_frames() -> None:
    payloads, schema = encode(FLOATS), FLOATS.schema
    records = Deframer().feed(b"".join(map(frame, payloads)))
    assert same(example_alike.decode(records, schema), payloads, schema)
    # one is left out from between them, so that the steps differ
    some = Records(records.data, records.starts[[0, 1, 3]], records.stops[[0, 1, 3]])
    assert example_alike.decode(some, schema) is None


def test_types_convert_as_ever() -> None:
    payloads = encode(FLOATS)
    wide = pa.schema([("a", pa.float64()), ("label", pa.uint8()), ("other", pa.bool_())])
    assert same(alike(payloads, wide), payloads, wide)
    with pytest.raises(SchemaMismatch, match="'a' is float32"):
        alike(payloads, pa.schema([("a", pa.binary())]))


@pytest.mark.parametrize(
    "cells",
    [
        {"x": [1.5] * 19 + [None]},  # of another length
        {"x": [1.5] * 20, "n": [1] * 19 + [300]},
        {"x": [1.5] * 20, "word": ["ab"] * 19 + ["ba"]},  # of the same length
        {"x": [1.5] * 20, "n": [200] * 19 + [300]},
        {"x": [[1.5]] * 20},
        {"word": ["ab"] * 20},  # asked for, and no number
    ],
)
def test_what_differs_in_more_is_left_to_others(cells: dict[str, list[object]]) -> None:
    table = pa.record_batch(cells)
    table = table.cast(
        pa.schema(
            [
                (f.name, pa.float32() if pa.types.is_floating(f.type) else f.type)
                if not pa.types.is_list(f.type)
                else (f.name, pa.list_(pa.float32()))
                for f in table.schema
            ]
        )
    )
    assert alike(encode(table), table.schema) is None


def test_after_a_block_that_differs_others_are_tried_again() -> None:
    payloads, schema = encode(FLOATS), FLOATS.schema
    damaged = [*payloads[:-1], payloads[-1][::-1]]
    assert alike(damaged, schema) is None
    for _ in range(example_alike._REST):
        assert alike(payloads, schema) is None
    assert same(alike(payloads, schema), payloads, schema)


def test_a_column_that_is_not_there_and_one_that_is_there_twice() -> None:
    payloads = encode(FLOATS)
    assert alike(payloads, pa.schema([("gone", pa.float32())])) is None
    entry = b"\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04" + b"\0\0\x80\x3f"
    twice = bytes([0x0A, 2 * len(entry)]) + 2 * entry
    assert example.Example.FromString(twice).features.feature["x"].float_list.value[:] == [1.0]
    assert alike([twice] * 20, pa.schema([("x", pa.float32())])) is None


def test_any_flipped_bit_gives_what_protobuf_gives_or_nothing() -> None:
    payloads, schema = encode(FLOATS), FLOATS.schema
    order, kept = random.Random(0), 0
    for _ in range(400):
        damaged = list(payloads)
        row = order.randrange(len(damaged))
        record = bytearray(damaged[row])
        record[order.randrange(len(record))] ^= 1 << order.randrange(8)
        damaged[row] = bytes(record)
        example_alike._known.cache_clear()
        found = alike(damaged, schema)
        if found is not None:
            kept += 1
            assert same(found, damaged, schema)
    assert 0 < kept < 400
