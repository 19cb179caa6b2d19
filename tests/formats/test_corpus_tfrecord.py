"""TFRecord that TensorFlow wrote, and damage of every kind: the rows, or a sentence that says what
is wrong."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats import get
from pipeprof.formats.base import Buffer, ReadOptions, drive_plan
from pipeprof.formats.tfrecord.example import Example
from pipeprof.formats.tfrecord.framing import Deframer, frame, masked_crc
from tests.contracts.format_samples import drive, read

CORPUS = Path(__file__).parent / "corpus" / "tfrecord"
TFRECORD = get("tfrecord")


def example(**features: Any) -> bytes:
    """One message; a feature is a list of ints, floats or bytes."""
    message = Example()
    for name, values in features.items():
        feature = message.features.feature[name]
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        getattr(feature, kind).value.extend(values)
    return bytes(message.SerializeToString())


GOOD = b"".join(frame(example(id=[number], x=[number / 2])) for number in range(100))
FIRST = len(frame(example(id=[0], x=[0.0])))


def test_a_file_of_tensorflow_is_read_as_protobuf_reads_it() -> None:
    data = (CORPUS / "penguin_eval.tfrecord.gz").read_bytes()
    found = read(TFRECORD, data).to_pylist()
    records = Deframer().feed(gzip.decompress(data))
    assert len(found) == len(records) == 100
    for row, record in zip(found, records, strict=True):
        features = Example.FromString(record).features.feature
        assert row.keys() == features.keys()
        for name, value in row.items():
            kind = features[name].WhichOneof("kind")
            assert [value] == list(getattr(features[name], kind).value)


def test_lists_of_a_sequence_example_are_never_dropped_in_silence() -> None:
    data = (CORPUS / "sequence_eval.tfrecord.gz").read_bytes()
    says = r"SequenceExample, whose feature_lists are not read; .* columns=\['f', 'i'\]"
    with pytest.raises(SchemaMismatch, match=says):
        read(TFRECORD, data)
    assert read(TFRECORD, data, ["i"]).num_rows == 4500


def with_length(length: int) -> bytes:
    """A record that says it has so many bytes, with the right CRC of that."""
    told = struct.pack("<Q", length)
    return told + struct.pack("<I", masked_crc(told)) + bytes(64)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


DAMAGED = {
    "its length": (flipped(GOOD, FIRST), "record 1 at byte 46 is damaged: the CRC of its length"),
    "the CRC of its length": (flipped(GOOD, FIRST + 8), "record 1 at byte 46 .* CRC of its length"),
    "its bytes": (
        flipped(GOOD, FIRST + 20),
        "record 1 at byte 46 is damaged: the CRC of its bytes",
    ),
    "the CRC of its bytes": (flipped(GOOD, 2 * FIRST - 1), "record 1 at byte 46 .* of its bytes"),
    "cut in a header": (GOOD[: FIRST + 5], "record 1 at byte 46 is truncated: 5 of its"),
    "cut in its bytes": (GOOD[: FIRST + 30], "record 1 at byte 46 .* beyond the end of the data"),
    "a length of 2^63": (GOOD + with_length(2**63), r"record 100 at .* 9223372036854775808 bytes"),
    "a length of 2^64-1": (GOOD + with_length(2**64 - 1), "record 100 at .* beyond the end"),
    "a length that leads beyond": (
        GOOD + with_length(10_000),
        "record 100 .* its 10000 bytes lead",
    ),
    "zeros": (GOOD + bytes(100), "record 100 at byte .* CRC of its length"),
    "another message": (frame(b"\xff" * 30), "record 0 is not a tf.train.Example"),
    "another message behind": (GOOD + frame(b"\xff" * 30), "record 100 is not a tf.train.Example"),
    "text": (b"id,x\n1,2\n" * 20, "record 0 at byte 0 is damaged: the CRC of its length"),
    "gzip cut": (gzip.compress(GOOD)[:-20], "gzip stream is truncated"),
    "gzip damaged": (flipped(gzip.compress(GOOD), 60), "gzip stream is damaged|CRC of its"),
    "gzip of a cut file": (gzip.compress(GOOD[:-3]), "record 99 at byte .* is truncated"),
    "gzip of a length beyond what it can hold": (
        gzip.compress(GOOD + with_length(2**31 - 1)),
        "record 100 at byte .* its 2147483647 bytes lead beyond the end",
    ),
    "rubbish behind gzip": (gzip.compress(GOOD) + b"rubbish", "other bytes follow it"),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("block_bytes", [16, 100, 2**22])
def test_damage_is_refused_with_what_is_wrong(name: str, block_bytes: int) -> None:
    data, says = DAMAGED[name]
    with pytest.raises(CorruptData, match=says) as raised:
        read(TFRECORD, data, options=ReadOptions(block_bytes=block_bytes))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"id": [0.5]}, "record 100 holds column 'id' as float_list where .* int64_list"),
        ({"id": [b"x"]}, "record 100 holds column 'id' as bytes_list"),
        ({"id": [1, 2]}, r"record 100 holds 2 values of column 'id' where 1 was expected.*types="),
    ],
)
def test_a_record_with_values_of_another_kind(other: dict[str, Any], says: str) -> None:
    types = {"id": pa.int64(), "x": pa.float32()}
    with pytest.raises(SchemaMismatch, match=says):
        read(TFRECORD, GOOD + frame(example(**other)), types=types)


def test_columns_that_some_records_lack_are_null_there() -> None:
    found = read(TFRECORD, frame(example(a=[1])) + frame(example(b=[2])) + frame(b""))
    assert found.to_pydict() == {"a": [1, None, None], "b": [None, 2, None]}


def test_a_length_beyond_the_end_is_refused_before_anything_is_read_for_it() -> None:
    """A gigabyte follows; only the first block of it is asked for."""
    head, gib, asked = with_length(2**31), 2**30, []

    def reader(head: bytes) -> Callable[[int, int], Buffer]:
        def answer(offset: int, length: int) -> Buffer:
            asked.append((offset, length))
            return head[offset : offset + length].ljust(length, b"\0")

        return answer

    with pytest.raises(FormatError, match="its 2147483648 bytes lead beyond the end"):
        drive_plan(TFRECORD.plan(gib, None, {}, ReadOptions()), reader(head))
    assert sum(length for _, length in asked) <= 2**20
    schema, asked[:] = pa.schema([("id", pa.int64())]), []
    split = drive_plan(TFRECORD.plan(len(GOOD), None, {}, ReadOptions()), reader(GOOD)).splits[0]
    with pytest.raises(FormatError, match="its 2147483648 bytes lead beyond the end"):
        list(drive(TFRECORD.decode(gib, split, schema, ReadOptions()), reader(head)))
    assert sum(length for _, length in asked) <= 2**23
