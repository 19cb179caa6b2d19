"""Seeded damage to bytes, of the kinds that disks, networks and bad writers do, and attackers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

_NUMBERS = (
    [0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 32768, 65535, 65536]
    + [2**shift + off for shift in (24, 31, 32, 40, 62, 63) for off in (-1, 0, 1)]
    + [2**64 - 1, 2**64 - 2, 2**64 - 128]
)
"""Where lengths, counts and offsets go wrong."""
_TOKENS = (
    *(b'"', b'""', b",", b"\n", b"\r", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xc3", b" "),
    *(b"[", b"]", b"{", b"}", b"[]", b"[[", b"null", b"true", b"nan", b"inf", b"-", b"."),
    *(b"1e999", b"-1", b"99999999999999999999", b"0x1", b"\\u0000", b"\\ud800", b"1.5e-400"),
)
"""What text formats trip over."""

Damage = Callable[[bytearray, Random, Sequence[bytes]], None]


def mutated(data: bytes, rng: Random, seeds: Sequence[bytes]) -> bytes:
    """``data`` with one to a few faults; ``seeds``: other valid objects to splice from."""
    damaged = bytearray(data)
    for _ in range(1 + int(rng.expovariate(1.5))):
        rng.choice(_DAMAGES)(damaged, rng, seeds)
    return bytes(damaged)


def _place(data: bytearray, rng: Random) -> int:
    """Anywhere, and every other time near an end: headers and footers steer all the rest."""
    end = len(data)
    if rng.random() < 0.5:
        return rng.randint(0, end)
    near = min(end, rng.choice((16, 64, 512)))
    return rng.randint(0, near) if rng.random() < 0.3 else rng.randint(end - near, end)


def _run(data: bytearray, rng: Random) -> slice:
    """A stretch of bytes, mostly short."""
    start = _place(data, rng)
    return slice(start, start + min(int(rng.expovariate(1 / 12)) + 1, 4096))


def _flip(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    if data:
        data[min(_place(data, rng), len(data) - 1)] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    if data:
        data[min(_place(data, rng), len(data) - 1)] = rng.randrange(256)


def _number(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    """A fixed-width integer, as in framing and in pages."""
    width = rng.choice((1, 2, 4, 8))
    start = _place(data, rng)
    number = rng.choice(_NUMBERS) % 2 ** (8 * width)
    data[start : start + width] = number.to_bytes(width, rng.choice(("little", "big")))


def _varint(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    """A varint, as in protobuf and Thrift, in the place of one that may be of another length."""
    start = _place(data, rng)
    stop = start
    while stop < len(data) and stop - start < 9 and data[stop] & 0x80:
        stop += 1
    number, encoded = rng.choice(_NUMBERS) % 2**64, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    data[start : stop + 1] = bytes([*encoded, number])


def _delete(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    del data[_run(data, rng)]


def _repeat(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    run = _run(data, rng)
    data[run.stop : run.stop] = data[run] * rng.choice((1, 1, 2, 17, 200))


def _move(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    run = _run(data, rng)
    moved = data[run]
    del data[run]
    at = _place(data, rng)
    data[at:at] = moved


def _cut(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    del data[_place(data, rng) :]


def _splice(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    """A stretch of another object over this one, or between."""
    other = bytearray(rng.choice(seeds))
    taken = other[_run(other, rng)]
    at = _place(data, rng)
    data[at : at + rng.choice((0, len(taken)))] = taken


def _token(data: bytearray, rng: Random, seeds: Sequence[bytes]) -> None:
    at = _place(data, rng)
    data[at : at + rng.choice((0, 0, 1, 4))] = rng.choice(_TOKENS)


_DAMAGES: tuple[Damage, ...] = (
    *(_flip, _flip, _overwrite, _number, _number, _varint, _varint),
    *(_delete, _repeat, _move, _cut, _splice, _token, _token),
)
