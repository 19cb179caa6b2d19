"""Records out of blocks of any size, copied only where they must be."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from pipeprof.errors import CorruptData
from pipeprof.formats.tfrecord.framing import Deframer, Records, frame
from pipeprof.formats.tfrecord.varint import PAD


def payloads(seed: int, most: int, count: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(most)) for _ in range(count)]


def fed(data: bytes, steps: Iterator[int], deframer: Deframer) -> Iterator[bytes]:
    """Cut into blocks of so many bytes, and those as `Deframer.cut` says."""
    deframer.size, at = len(data), 0
    while at < len(data) and not deframer.broken:
        step = next(steps)
        for part in deframer.cut(data[at : at + step]):
            records = deframer.feed(part)
            if records:  # up to so far beyond the last of them words are read
                assert len(records.data) - records.stops[-1] >= len(PAD)
            yield from records
        at += step


def steps(seed: int, most: int) -> Iterator[int]:
    rng = random.Random(seed)
    while True:
        yield rng.randint(1, most)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("most", "count", "block"), [(50, 300, 200), (70_000, 30, 200_000)])
def test_blocks_of_any_size_give_the_same_records(
    seed: int, most: int, count: int, block: int
) -> None:
    written = payloads(seed, most, count)
    deframer = Deframer()
    assert list(fed(b"".join(map(frame, written)), steps(seed, block), deframer)) == written
    deframer.finish()
    assert deframer.records == count


def test_the_rest_of_a_block_stays_where_it_is_when_a_large_record_ends_in_it() -> None:
    first, *others = payloads(0, 100_000, 9)
    data = frame(first.ljust(90_000)) + b"".join(map(frame, others))
    deframer = Deframer()
    assert not len(deframer.feed(data[:50_000]))
    block = memoryview(data)[50_000:-100]
    head, rest = deframer.cut(block)
    assert len(head) == 90_016 - 50_000
    assert list(deframer.feed(head)) == [first.ljust(90_000)]
    records = deframer.feed(rest)
    assert list(records) == others[:-1]
    assert np.shares_memory(np.frombuffer(records.data, np.uint8), np.frombuffer(data, np.uint8))


def test_a_block_of_ten_thousand_records() -> None:
    written = payloads(2, 9, 10_000)
    assert list(Deframer().feed(b"".join(map(frame, written)))) == written


def test_small_records_are_not_cut_from_their_block() -> None:
    deframer = Deframer()
    data = b"".join(map(frame, payloads(0, 100, 50)))
    deframer.feed(data[:1001])
    assert deframer.cut(data[1001:]) == [data[1001:]]


def test_damage_loses_only_the_records_that_it_is_in() -> None:
    rng, written = random.Random(0), payloads(0, 60, 40)
    whole, seen = b"".join(map(frame, written)), {"broken": 0, "faults": 0}
    for _ in range(300):
        data, deframer, faults = bytearray(whole), Deframer(), 0
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        deframer.size, found = len(data), list[bytes]()
        for at in range(0, len(data), 100):
            found += deframer.feed(data[at : at + 100])
            faults += len(deframer.faults)
        if deframer.broken:  # of a length: nothing behind it can be found
            assert found == written[: deframer.records]
        else:
            assert [payload for payload in written if payload in found] == found
            assert len(found) == len(written) - faults
        seen["broken"] += deframer.broken is not None
        seen["faults"] += faults
    assert min(seen.values()) > 50


def test_a_length_that_no_payload_has() -> None:
    length = (2**63 + 5).to_bytes(8, "little")
    lie = length + frame(b"")[8:12]  # the CRC of another length, too
    deframer = Deframer()
    assert list(deframer.feed(frame(b"good") + lie + bytes(100))) == [b"good"]
    with pytest.raises(CorruptData, match="record 1 at byte 20 is damaged"):
        deframer.finish()


def test_a_part_of_the_records_is_records_too() -> None:
    written = payloads(1, 40, 20)
    records = Records.of(written)
    assert list(records[3:9]) == written[3:9]
