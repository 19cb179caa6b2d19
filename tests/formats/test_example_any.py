"""Whatever is in a record, the scan gives what protobuf gives, or refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.tfrecord import example
from pipeprof.formats.tfrecord.scan import Refused
from tests.formats.test_example import (
    blobs,
    decode,
    entry,
    field,
    floats,
    ints,
    outcome,
    record,
    scanned,
    schema,
)

NAMES = st.sampled_from(["a", "b", "a longer name", "a longer name, much longer", "é", ""])
TYPES = ["int64", "float32", "binary", "list<int64>", "list<float32>", "list<binary>"]
RARE_TYPES = ["int8", "bool", "string", "list<int64>[2]", "float16"]
INT = st.integers(-(2**63), 2**63 - 1).map(ints)
FLOAT = st.floats(width=32).map(floats)
BLOB = st.binary(max_size=200).map(blobs)
RARE = st.one_of(
    st.lists(st.integers(-1, 200), max_size=3).map(lambda values: ints(*values)),
    st.lists(st.floats(width=32), max_size=3).map(lambda values: floats(*values)),
    st.lists(st.binary(max_size=3), max_size=3).map(lambda values: blobs(*values)),
    st.sampled_from([b"", b"\x12\x00", field(3, b"\x08\x05"), field(2, b"\x0d" + bytes(4))]),
    st.binary(max_size=4),
)
LISTS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300), max_size=30).map(
    lambda values: ints(*values)
)
COLUMNS = [
    INT,
    FLOAT,
    BLOB,
    LISTS,
    INT | st.just(b"\x1a\x00"),
    FLOAT | st.just(b"\x1a\x00"),
    INT | RARE,
]
ENTRIES = st.one_of(
    st.builds(entry, NAMES, INT | RARE),
    st.builds(entry, st.binary(max_size=9), INT),
    st.binary(max_size=4),
)
UNUSUAL = st.lists(ENTRIES, max_size=4).map(lambda entries: record(*entries))
SCHEMAS = st.dictionaries(NAMES, st.sampled_from(TYPES + RARE_TYPES), min_size=1).map(
    lambda types: schema(**types)
)


def of_features(features: dict[str, bytes]) -> bytes:
    return record(*(entry(name, feature) for name, feature in features.items()))


BLOCKS = st.dictionaries(NAMES, st.sampled_from(COLUMNS), max_size=5).flatmap(
    lambda columns: st.lists(
        st.fixed_dictionaries({}, optional=columns).map(of_features), min_size=1, max_size=6
    )
)


def same_or_refused(payloads: Sequence[bytes], wanted: pa.Schema) -> bool:
    """Whether the scan read it; whatever is wrong is left to protobuf to report."""
    try:
        found = scanned(payloads, wanted, 5)
    except (Refused, SchemaMismatch):
        return False
    found.validate(full=True)
    payloads = [only(payload, wanted.names) for payload in payloads]
    assert repr(found.to_pydict()) == outcome(example.decode, payloads, wanted)
    return True


def only(payload: bytes, names: Sequence[str]) -> bytes:
    """The record without the entries of other names, each of which is a key and a Feature."""
    kept, rest = [], payload and content(payload, 0x0A)[0]
    while rest:
        inside, after = content(rest, 0x0A)
        key, feature = content(inside, 0x0A)
        assert content(feature, 0x12)[1] == b"", "an entry has more than these two"
        if key in [name.encode() for name in names]:
            kept.append(rest[: len(rest) - len(after)])
        rest = after
    return record(*kept)


def content(message: bytes, tag: int) -> tuple[bytes, bytes]:
    """Of the field that a message begins with, and what follows it."""
    assert message[0] == tag
    size = next(at for at in range(1, 6) if message[at] < 128)
    length = sum((byte & 127) << 7 * at for at, byte in enumerate(message[1 : size + 1]))
    assert len(message) > size + length, "it ends beyond its message"
    return message[size + 1 : size + 1 + length], message[size + 1 + length :]


@settings(deadline=None)
@given(BLOCKS, st.lists(UNUSUAL, max_size=1), SCHEMAS)
def test_any_records_are_what_protobuf_says_or_refused(
    block: list[bytes], unusual: list[bytes], wanted: pa.Schema
) -> None:
    payloads = block + unusual
    many = payloads * 4  # so that a scan is worth it
    if same_or_refused(payloads, wanted):
        many = [only(payload, wanted.names) for payload in many]
    assert outcome(decode, many, wanted) == outcome(example.decode, many, wanted)


@pytest.mark.parametrize(
    "feature",
    [
        *(ints(2**62), ints(-1), ints(300), ints(1, 300), ints(), b"\x1a\x00", b""),
        *(floats(1.5), floats(1, 2), blobs(b"\n\n")),
    ],
)
def test_no_damage_to_a_byte_is_read_otherwise_than_protobuf_reads_it(
    feature: bytes,
) -> None:
    good = record(entry("a", ints(1)), entry("key", feature))
    kind = {b"\x0a": "binary", b"\x12": "float32"}.get(feature[:1], "int64")
    wanted = schema(a="int64", key=f"list<{kind}>")
    for at, byte in enumerate(good):
        for other in {*(byte ^ 1 << bit for bit in range(8)), byte - 1 & 255, 0, 10, 18, 26, 255}:
            damaged = good[:at] + bytes([other]) + good[at + 1 :]
            same_or_refused([good, damaged, good], wanted)


SCALARS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "a": (ints, st.integers(-(2**63), 2**63 - 1)),
    "b": (floats, st.floats(width=32)),
    "a longer name": (blobs, st.binary()),
}


@settings(deadline=None)
@given(st.data())
def test_one_value_or_none_in_any_order_is_never_refused(data: st.DataObject) -> None:
    payloads = []
    for _ in range(data.draw(st.integers(1, 6))):
        names = data.draw(st.permutations(sorted(SCALARS)))[: data.draw(st.integers(0, 3))]
        payloads.append(
            of_features({name: SCALARS[name][0](data.draw(SCALARS[name][1])) for name in names})
        )
    assert same_or_refused(payloads, schema(a="int64", b="float32", **{"a longer name": "binary"}))
