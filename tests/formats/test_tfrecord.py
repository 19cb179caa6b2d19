"""TFRecord: the contract, and what is TFRecord's own."""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, SchemaMismatch, UsageError
from pipeprof.formats import get
from pipeprof.formats.base import FilePlan, ReadOptions
from pipeprof.formats.tfrecord.example import Example
from pipeprof.formats.tfrecord.framing import Deframer, frame, is_framed, masked_crc
from tests.contracts.format_contract import FormatContract
from tests.contracts.format_samples import (
    EVERY_TYPE,
    Bytes,
    batches,
    encode,
    meaning,
    plan,
    read,
    types_of,
)

TFRECORD = get("tfrecord")


class TestTfrecord(FormatContract):
    name = "tfrecord"

    def rows_survive(self, whole: pa.Table, part: pa.Table, kept: int, data: bytes) -> bool:
        """A prefix of the rows, and only where a record ends."""
        ends = [0]
        while ends[-1] < len(data):
            ends.append(ends[-1] + 16 + struct.unpack_from("<Q", data, ends[-1])[0])
        return (
            kept in ends
            and part.num_rows == ends.index(kept)
            and (not part.num_rows or part.equals(whole.slice(0, part.num_rows)))
        )

    def flip_is_seen(self, data: bytes, position: int) -> bool:
        return True


def by_hand(*payloads: bytes) -> bytes:
    """Records as the published format describes them, with a CRC of its own making."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)

    def masked(data: bytes) -> bytes:
        crc = 0xFFFFFFFF
        for byte in data:
            crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    records = []
    for payload in payloads:
        length = struct.pack("<Q", len(payload))
        records.append(length + masked(length) + payload + masked(payload))
    return b"".join(records)


# Example {features {feature {key "a" value {int64_list {value [3, 270, -1]}}}
#                    feature {key "b" value {bytes_list {value "hi"}}}}}
BYTES_OF_AN_EXAMPLE = bytes.fromhex(
    "0a250a16 0a0161 1211 1a0f 0a0d 03 8e02 ffffffffffffffffff010a0b 0a0162 1206 0a04 0a02 6869"
)


def test_crc_of_the_standard() -> None:
    crc = 0xE3069283  # of "123456789", by RFC 3720's polynomial
    expected = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked_crc(b"123456789") == expected


def test_records_written_by_hand_are_read() -> None:
    data = by_hand(BYTES_OF_AN_EXAMPLE, BYTES_OF_AN_EXAMPLE)
    assert is_framed(data)
    assert read(TFRECORD, data).to_pydict() == {"a": [[3, 270, -1]] * 2, "b": [b"hi"] * 2}


def test_what_is_written_is_what_a_hand_would_write() -> None:
    table = pa.table({"a": [[3, 270, -1]], "b": [b"hi"]})
    assert encode(TFRECORD, table) == by_hand(BYTES_OF_AN_EXAMPLE)


def test_values_that_are_not_packed_are_read() -> None:
    entry = b"\x0a\x01a\x12\x06\x1a\x04\x08\x05\x08\x06"
    payload = b"\x0a" + bytes([len(entry) + 2]) + b"\x0a" + bytes([len(entry)]) + entry
    assert read(TFRECORD, by_hand(payload)).to_pydict() == {"a": [[5, 6]]}


def records(*rows: dict[str, list[int] | list[float] | list[bytes]]) -> bytes:
    payloads = []
    for row in rows:
        example = Example()
        for name, values in row.items():
            feature = example.features.feature[name]
            kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
            if values:
                getattr(feature, kind[type(values[0])]).value.extend(values)
            else:
                feature.SetInParent()
        payloads.append(frame(example.SerializeToString()))
    return b"".join(payloads)


def test_missing_and_empty_features_are_null() -> None:
    data = records({"a": [1], "l": [1.0, 2.0]}, {"l": []}, {"a": [3], "l": [0.5]})
    expected = {"a": [1, None, 3], "l": [[1.0, 2.0], None, [0.5]]}
    for block_bytes in (1, 50, 1000):
        assert read(TFRECORD, data, options=ReadOptions(block_bytes=block_bytes)).to_pydict() == (
            expected
        )


def test_columns_are_sorted_and_types_add_what_the_first_records_lack() -> None:
    data = records(*({"b": [1], "a": [2]} for _ in range(300)), {"b": [1], "rare": [7]})
    assert read(TFRECORD, data).column_names == ["a", "b"]
    found = read(TFRECORD, data, ["rare"], {"rare": pa.int32()})
    assert found["rare"].to_pylist() == [None] * 300 + [7]


def test_a_later_record_that_holds_several_values_says_the_way_out() -> None:
    data = records(*({"a": [1]} for _ in range(256)), {"a": [2, 3]})
    with pytest.raises(SchemaMismatch, match=r"record 256 holds 2 values.*'a'.*'list<int64>'"):
        read(TFRECORD, data)
    found = read(TFRECORD, data, types={"a": pa.list_(pa.int64())})
    assert found["a"][-1].as_py() == [2, 3]


def test_a_fixed_list_of_another_length_names_the_record() -> None:
    data = records({"a": [1, 2]}, {"a": [1, 2, 3]})
    with pytest.raises(SchemaMismatch, match=r"record 1 holds 3 values.*2 was expected"):
        read(TFRECORD, data, types={"a": pa.list_(pa.int64(), 2)})


def test_a_column_of_two_kinds_names_the_record() -> None:
    with pytest.raises(SchemaMismatch, match=r"record 1 .*'a' as float_list.*int64_list"):
        read(TFRECORD, records({"a": [1]}, {"a": [1.5]}))
    later = records(*({"a": [1]} for _ in range(256)), {"a": [b"x"]})
    with pytest.raises(SchemaMismatch, match=r"record 256 .*'a' as bytes_list"):
        read(TFRECORD, later)


def test_bytes_that_are_no_text_cannot_be_string() -> None:
    with pytest.raises(SchemaMismatch, match=r"'a' is binary.*string"):
        read(TFRECORD, records({"a": [b"\xff"]}), types={"a": pa.string()})


def test_payloads_that_are_no_example() -> None:
    with pytest.raises(CorruptData, match=r"record 1 is not a tf.train.Example"):
        read(TFRECORD, records({"a": [1]}) + frame(b"\xff\xff\xff"))
    with pytest.raises(SchemaMismatch, match="no features"):
        read(TFRECORD, frame(b""))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_nothing_is_a_valid_file(compression: str) -> None:
    data = encode(TFRECORD, pa.table({"a": pa.array([], pa.int64())}), compression)
    assert plan(TFRECORD, Bytes(data)) == plan(TFRECORD, Bytes(b"")) == FilePlan(None, ())


def test_a_length_that_lies_costs_no_memory_and_no_read() -> None:
    good = records({"a": [1]})
    length = (2**40).to_bytes(8, "little")
    lie = length + masked_crc(length).to_bytes(4, "little") + b"x" * 100
    source = Bytes(good + lie)
    made = plan(TFRECORD, Bytes(good))
    with pytest.raises(CorruptData, match=rf"record 1 at byte {len(good)} .*1099511627776 bytes"):
        plan(TFRECORD, source)
    assert made.schema is not None
    with pytest.raises(CorruptData, match="lead beyond the end"):
        read(TFRECORD, zlib.compress(good + lie))


def test_a_damaged_record_is_told_with_its_number_and_place() -> None:
    one = records({"a": [1]})
    data = bytearray(one * 3)
    data[2 * len(one) + 14] ^= 1
    with pytest.raises(CorruptData, match=f"record 2 at byte {2 * len(one)} is damaged"):
        read(TFRECORD, bytes(data))
    with pytest.raises(CorruptData, match=f"record 1 at byte {len(one)} is truncated"):
        read(TFRECORD, one + one[:5])


def test_a_record_larger_than_sample_and_blocks() -> None:
    data = records({"a": [b"x" * 3_000_000]}, {"a": [b"y"]})
    found = read(TFRECORD, data, options=ReadOptions(block_bytes=100_000))
    assert [len(cell) for cell in found["a"].to_pylist()] == [3_000_000, 1]


def test_blocks_bound_what_is_held() -> None:
    data = records(*({"a": [i], "pad": [b"x" * 1000]} for i in range(500)))
    source, options = Bytes(data), ReadOptions(block_bytes=10_000)
    made = plan(TFRECORD, source)
    source.asked.clear()
    sizes = [batch.num_rows for batch in batches(TFRECORD, source, made, options)]
    assert max(sizes) <= 10
    assert max(length for _, length in source.asked) == 10_000


def test_a_compressed_stream_that_expands_a_thousandfold_comes_in_blocks() -> None:
    data = zlib.compress(records(*({"a": [b"\x00" * 100_000]} for _ in range(200))))
    source, options = Bytes(data), ReadOptions(block_bytes=2**18)
    made = plan(TFRECORD, source)
    sizes = [batch.num_rows for batch in batches(TFRECORD, source, made, options)]
    assert sum(sizes) == 200
    assert max(sizes) <= 3


def test_bytes_after_a_zlib_stream() -> None:
    with pytest.raises(CorruptData, match="other bytes follow"):
        read(TFRECORD, zlib.compress(records({"a": [1]})) + b"more")


def test_what_an_example_cannot_hold_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="'x' is float64, which TFRecord cannot hold"):
        TFRECORD.encoder(pa.schema([("x", pa.float64())]))
    with pytest.raises(SchemaMismatch, match="'x' is uint64"):
        encode(TFRECORD, pa.table({"x": pa.array([2**63], pa.uint64())}))
    with pytest.raises(UsageError, match="snappy"):
        TFRECORD.encoder(pa.schema([("x", pa.int64())]), "snappy")


def test_a_null_inside_a_list_is_stored_as_its_tensor_value() -> None:
    table = pa.table({"i": [[1, None], None], "b": pa.array([[None], [b"x"]])})
    types = {"i": pa.list_(pa.int64()), "b": pa.list_(pa.binary())}
    found = read(TFRECORD, encode(TFRECORD, table), types=types)
    assert found.to_pydict() == {"i": [[1, 0], None], "b": [[b""], [b"x"]]}


def test_what_is_beneath_a_null_and_outside_of_a_slice_is_not_written() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 6], pa.int32()), pa.array(range(6)), mask=pa.array([False, True, False])
    )
    table = pa.table({"l": lists, "s": ["a", None, "c"]}).slice(1)
    types = {"l": pa.list_(pa.int64()), "s": pa.string()}
    found = read(TFRECORD, encode(TFRECORD, table), types=types)
    assert found.to_pydict() == {"l": [None, [4, 5]], "s": [None, "c"]}


def test_a_number_that_no_record_holds_names_its_column() -> None:
    with pytest.raises(SchemaMismatch, match="'x' is uint64"):
        encode(TFRECORD, pa.table({"x": pa.array([2**63], pa.uint64())}))


def test_some_columns_of_every_type_are_the_same_as_all() -> None:
    table = pa.concat_tables([EVERY_TYPE] * 40)
    data, types = encode(TFRECORD, table), types_of(table.schema)
    for columns in (table.column_names, ["ints", "float32"], ["binary"]):
        assert meaning(read(TFRECORD, data, columns, types)) == meaning(table.select(columns))


def test_each_damaged_record_of_a_block_is_told_with_its_place_among_the_good_ones() -> None:
    records = [b"%d" % number * 3 for number in range(8)]
    data = bytearray(b"".join(map(frame, records)))
    for number in (0, 3, 4, 7):
        data[number * 19 + 12] ^= 1  # a payload of 3 bytes, 16 around it
    deframer = Deframer()
    assert list(deframer.feed(bytes(data))) == [records[number] for number in (1, 2, 5, 6)]
    assert [before for before, _ in deframer.faults] == [0, 2, 2, 4]
    assert [str(error).partition(" is ")[0] for _, error in deframer.faults] == [
        f"record {number} at byte {number * 19}" for number in (0, 3, 4, 7)
    ]
    assert deframer.records == 8


def test_deframer_gives_records_when_they_are_whole() -> None:
    deframer = Deframer()
    data = frame(b"first") + frame(b"") + frame(b"third")
    given = [list(deframer.feed(data[i : i + 1])) for i in range(len(data))]
    assert [payloads for payloads in given if payloads] == [[b"first"], [b""], [b"third"]]
    deframer.finish()
    assert deframer.records == 3
