"""Records out of blocks: found by compiled code or without, and copied only where they must be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from pipeprof.errors import CorruptData
from pipeprof.formats.compiled import SWITCH, kernels
from pipeprof.formats.framing import Deframer, Records, frame
from pipeprof.formats.words import PAD
from tests.needs import missing


@pytest.fixture(params=["0", "1"], ids=["plain", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(SWITCH, request.param)
    if request.param == "1" and kernels("pipeprof.formats.framing_kernel") is None:
        assert find_spec("numba") is None, "its kernel cannot be compiled"
        missing("numba is not installed")
    return str(request.param)


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
    way: str, seed: int, most: int, count: int, block: int
) -> None:
    written = payloads(seed, most, count)
    deframer = Deframer()
    assert list(fed(b"".join(map(frame, written)), steps(seed, block), deframer)) == written
    deframer.finish()
    assert deframer.records == count


def test_the_rest_of_a_block_stays_where_it_is_when_a_large_record_ends_in_it(way: str) -> None:
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


def test_a_block_of_ten_thousand_records(way: str) -> None:
    written = payloads(2, 9, 10_000)
    assert list(Deframer().feed(b"".join(map(frame, written)))) == written


def test_small_records_are_not_cut_from_their_block() -> None:
    deframer = Deframer()
    data = b"".join(map(frame, payloads(0, 100, 50)))
    deframer.feed(data[:1001])
    assert deframer.cut(data[1001:]) == [data[1001:]]


def test_any_damage_is_told_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, written = random.Random(0), payloads(0, 60, 40)
    whole, told = b"".join(map(frame, written)), {"broken": 0, "faults": 0}
    for seed in range(300):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        outcomes = []
        for switch in "01":
            monkeypatch.setenv(SWITCH, switch)
            deframer, faults, found = Deframer(), [], []
            for payload in fed(bytes(data), steps(seed, 500), deframer):
                found.append(payload)
                faults += [(before, str(error)) for before, error in deframer.faults]
            outcomes.append((found, faults, str(deframer.broken), deframer.records))
        assert outcomes[0] == outcomes[1]
        told["broken"] += deframer.broken is not None
        told["faults"] += bool(faults)
    assert min(told.values()) > 50


def test_a_length_that_no_payload_has_is_told_alike(way: str) -> None:
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
    assert records[4] == written[4]
    assert Records.of(records) is records
