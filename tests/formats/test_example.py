"""Records of `tf.train.Example` scanned without protobuf: what protobuf gives, or nothing."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, PipeprofError, SchemaMismatch
from pipeprof.formats.tfrecord import columns, example
from pipeprof.formats.tfrecord.columns import decode_scanned
from pipeprof.formats.tfrecord.framing import Records
from pipeprof.formats.tfrecord.scan import BYTES, EMPTY, FLOAT, INT, Refused, scan
from pipeprof.formats.types import parse_type


def scanned(payloads: Sequence[bytes], wanted: pa.Schema, first: int = 0) -> pa.RecordBatch:
    """Raises `Refused`."""
    return decode_scanned(Records.of(payloads), wanted, first)


def decode(payloads: Sequence[bytes], wanted: pa.Schema, first: int = 0) -> pa.RecordBatch:
    return columns.decode(Records.of(payloads), wanted, first)


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    rest = number >> 7
    return bytes([number & 127 | 128]) + varint(rest) if rest else bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def ints(*values: int) -> bytes:
    return field(3, field(1, b"".join(map(varint, values))))


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))


def blobs(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def entry(name: str | bytes, feature: bytes) -> bytes:
    key = name if isinstance(name, bytes) else name.encode()
    return field(1, field(1, key) + field(2, feature))


def record(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def schema(**types: str) -> pa.Schema:
    return pa.schema([(name, parse_type(text)) for name, text in types.items()])


def read(payloads: Sequence[bytes], **types: str) -> dict[str, list[Any]]:
    """The columns, which are protobuf's too."""
    found = scanned(payloads, schema(**types))
    found.validate(full=True)
    assert repr(found.to_pydict()) == repr(example.decode(payloads, found.schema, 0).to_pydict())
    return dict(found.to_pydict())


def test_ints_of_every_length() -> None:
    edges = [0, *(2**bit + more for bit in range(7, 63, 7) for more in (-1, 0, 1)), 2**63 - 1]
    values = edges + [-value - 1 for value in edges]
    payloads = [record(entry("a", ints(value))) for value in values]
    assert read(payloads, a="int64") == {"a": values}


def test_a_scalar_of_each_kind_and_its_list() -> None:
    one = record(entry("i", ints(-7)), entry("f", floats(0.5)), entry("b", blobs(b"\xff\x00")))
    types = {"i": "int64", "f": "float32", "b": "binary"}
    assert read([one, one], **types) == {
        "i": [-7] * 2,
        "f": [0.5] * 2,
        "b": [b"\xff\x00"] * 2,
    }
    lists = {name: f"list<{kind}>" for name, kind in types.items()}
    assert read([one], **lists) == {"i": [[-7]], "f": [[0.5]], "b": [[b"\xff\x00"]]}


def test_the_usual_values_are_not_left_to_protobuf() -> None:
    features = {
        **{ints(value): INT for value in (0, 300, 2**56, 2**62, -1)},
        floats(1.5): FLOAT,
        blobs(b""): BYTES,
        blobs(b"x" * 123): BYTES,
        blobs(b"x" * 124): BYTES,
        blobs(b"x" * 20_000): BYTES,
        b"\x1a\x00": INT | EMPTY,
    }
    records = Records.of([record(entry("a", feature)) for feature in features])
    cells, others = scan(records, ["a"])
    assert cells.kind[0].tolist() == list(features.values())
    assert not others
    lists = [record(entry("a", feature)) for feature in (ints(*range(999)), floats(1, 2))]
    cells, _ = scan(Records.of(lists), ["a"])
    assert cells.kind[0].tolist() == [INT, FLOAT]


def test_each_record_has_an_order_of_its_own() -> None:
    entries = [entry(f"column {i}", ints(i)) for i in range(20)]
    payloads = [record(*entries[turn:], *entries[:turn]) for turn in range(20)]
    types = {f"column {i}": "int64" for i in range(20)}
    assert read(payloads, **types) == {f"column {i}": [i] * 20 for i in range(20)}


def test_what_is_missing_or_empty_is_null() -> None:
    payloads = [
        record(entry("a", ints(1)), entry("b", floats(1))),
        record(entry("a", b"\x1a\x00")),
        record(entry("b", floats(2))),
        record(),
        b"",
    ]
    nothing = [None] * 4
    assert read(payloads, a="int64", c="int64") == {
        "a": [1, *nothing],
        "c": [None, *nothing],
    }
    assert read(payloads, b="list<float32>")["b"] == [[1.0], None, [2.0], None, None]


def test_an_empty_list_of_the_same_kind_is_null() -> None:
    ones, none_of_int = [record(entry("a", ints(1)))] * 2, record(entry("a", b"\x1a\x00"))
    assert read([*ones, none_of_int], a="int64") == {"a": [1, 1, None]}
    assert read([none_of_int], a="list<int64>") == {"a": [None]}


@pytest.mark.parametrize("other", [b"\x12\x00", floats(1), blobs(b"")])
def test_one_of_another_kind_is_an_error(other: bytes) -> None:
    payloads = [record(entry("a", ints(1)))] * 20 + [record(entry("a", other))]
    with pytest.raises(Refused):
        scanned(payloads, schema(a="int64"))
    with pytest.raises(SchemaMismatch, match="record 20 holds column 'a' as"):
        decode(payloads, schema(a="int64"), 0)


def test_lists_of_any_length() -> None:
    edges = [0, 1, -1, *(2**bit + more for bit in range(7, 63, 7) for more in (-1, 0, 1))]
    rows = [edges, [], [5], edges[::-1], list(range(1000)), [2**63 - 1, -(2**63)] * 70]
    payloads = [
        record(entry("l", ints(*row)), entry("f", floats(*row[:99])), entry("n", ints(*row)))
        for row in rows
    ]
    found = read(payloads, l="list<int64>", f="list<float32>")
    assert found["l"] == [row or None for row in rows]
    assert found["f"] == [
        [struct.unpack("f", struct.pack("f", x))[0] for x in row[:99]] or None for row in rows
    ]


def test_lists_that_no_number_ends() -> None:
    for damage in (b"\x01\xff", b"\xff" * 10 + b"\x01", b"\x80" * 9 + b"\x02", b"\xff" * 30):
        payloads = [record(entry("l", ints(1, 2))), record(entry("l", field(3, field(1, damage))))]
        with pytest.raises(Refused):
            scanned(payloads, schema(l="list<int64>"), 0)


def test_several_values_and_long_ones_beside_scalars() -> None:
    long = b"x" * 3000
    payloads = [
        record(entry("l", ints(*range(i % 4))), entry("b", blobs(long[i:])), entry("a", ints(i)))
        for i in range(8)
    ]
    found = read(payloads, a="int32", l="list<int64>", b="string")
    assert found["a"] == list(range(8))
    assert found["l"] == [list(range(i % 4)) or None for i in range(8)]
    assert [len(text) for text in found["b"]] == list(range(3000, 2992, -1))


@pytest.mark.parametrize(
    "feature", [field(3, b"\x08\x05"), b"", ints(1, 2), blobs(b"x", b"y")], ids=str
)
def test_a_value_of_another_form_leaves_the_block_to_protobuf(feature: bytes) -> None:
    with pytest.raises(Refused):
        scanned([record(entry("a", ints(6))), record(entry("a", feature))], schema(a="int64"))


def test_only_the_names_asked_for_match_whatever_their_length() -> None:
    names = ["a" * length for length in (0, 1, 7, 8, 9, 16, 17, 100)] + ["a\0", "b" * 9]
    payloads = [record(*(entry(name, ints(place)) for place, name in enumerate(names)))]
    for place, name in enumerate(names):
        assert read(payloads, **{name: "int64"}) == {name: [place]}
    assert read(payloads, **{"a" * 10: "int64"}) == {"a" * 10: [None]}


@pytest.mark.parametrize(
    "unusual",
    [
        record(entry("a", ints(1)), entry("a", ints(2))),
        record(entry("a", ints(1))) + b"\x10\x01",
        record(entry("a", ints(1))) + record(entry("b", ints(1))),
        record(entry("a", ints(1)), field(2, b"unknown")),
        record(field(1, field(2, ints(1)) + field(1, b"a"))),
        record(field(1, field(1, b"a"))),
        record(entry("a" * 200, ints(1))),
        # a long key, of which the end and the value would pass for a value too
        record(entry("a" * 199 + "\x12", ints(1, 1, 1, 1, 8, 1, 8, 1, 8, 1, 8, 128))),
        record(field(1, field(1, b"a") + b"\x12\x80\x0a\x7e\x0a\x7c" + bytes(124))),
        record(entry("a", b"\x02\x00")),
        b"\x0a\x8c\x80\x80\x80\x80" + entry("a", ints(1)),
        record(entry("a", blobs(b"xyz"))[:-2]),
        record(entry("a", b"\x1a\x03\x0a\x01\xff")),
        record(entry("a", ints(1)))[:-1],
        record(field(1, b"\x0a")),
        field(1, b"\x0a"),
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\x7f",
    ],
)
def test_what_is_unusual_is_left_to_protobuf(unusual: bytes) -> None:
    usual = record(entry("a", ints(1)))
    payloads, wanted = [usual] * 20 + [unusual] + [usual] * 20, schema(a="int64")
    with pytest.raises(Refused):
        scanned(payloads, wanted)
    assert outcome(decode, payloads, wanted) == (outcome(example.decode, payloads, wanted))


def test_more_keys_than_are_kept_and_a_key_that_is_long() -> None:
    payloads = [
        record(*(entry(f"key {i}", ints(i)) for i in range(5000))),
        record(entry("a", ints(1))),
    ]
    wanted = schema(a="int64", **{"key 4999": "int64"})
    assert outcome(decode, payloads * 8, wanted) == (outcome(example.decode, payloads * 8, wanted))
    named = "n" * 127
    assert read([record(entry(named, ints(1)))], **{named: "int64"}) == {named: [1]}


@pytest.mark.parametrize("damage", [b"\x1a\x03\x0a\x01\xff", b"\x02\x00"])
def test_a_damaged_record_is_named_unless_its_damage_is_in_a_column_nobody_asked_for(
    damage: bytes,
) -> None:
    usual = record(entry("a", ints(1)), entry("b", ints(1)))
    payloads = [usual] * 17 + [record(entry("a", ints(2)), entry("b", damage))] * 3
    with pytest.raises(CorruptData, match=r"record 117 is not a tf\.train\.Example"):
        decode(payloads, schema(a="int64", b="int64"), 100)
    assert decode(payloads, schema(a="int64"), 100).to_pydict() == {"a": [1] * 17 + [2] * 3}


def test_records_of_lists_of_other_lengths() -> None:
    payloads = [record(entry("a", ints(i)), entry("b", floats(*range(i)))) for i in range(2, 40)]
    wanted = schema(a="int64", b="list<float32>")
    assert decode(payloads, wanted, 0) == example.decode(payloads, wanted, 0)


def outcome(read: Any, payloads: Sequence[bytes], wanted: pa.Schema) -> Any:
    try:
        found = read(payloads, wanted, 5)
    except PipeprofError as error:
        return type(error), str(error)
    found.validate(full=True)
    return repr(found.to_pydict())
