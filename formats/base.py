"""What a format is: pure functions over bytes.

A format never does I/O. Planning and decoding are generators that yield `Need` (byte ranges of
one object) and are sent the bytes; whoever drives them decides where the bytes come from, and so
can time reading and decoding apart. Tests drive them over a `bytes` in memory with `drive`.

A format does not know its object's name: errors say where in the object, and whoever drives adds
the name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError, UsageError
from pipeprof.model import ReadOptions as ReadOptions

AHEAD = 2
"""Ranges in `Need.then`, at most: with one the next object's first comes too late."""
Buffer: TypeAlias = "bytes | bytearray | memoryview"
Range: TypeAlias = "tuple[int, int]"
"""(offset, length) in bytes of one object."""


@dataclass(frozen=True)
class Need:
    """Byte ranges wanted of the object; answered with one buffer per range, in order."""

    ranges: tuple[Range, ...]
    then: tuple[Range, ...] = ()
    """Each will be wanted next, by itself and for certain, if nothing is damaged: whoever drives
    may fetch them while these are decoded."""


@dataclass(frozen=True)
class Split:
    """A part of one object that one worker decodes on its own. What the numbers mean is the
    format's affair; together the splits of an object cover each row once."""

    start: int
    end: int
    rows: int | None = None
    """When the format knows without reading them."""
    ranges: tuple[Range, ...] = ()
    """Bytes to fetch in one go, where the format knows them beforehand."""


@dataclass(frozen=True)
class FilePlan:
    """An object's columns and parts."""

    schema: pa.Schema | None
    """As stored, or as inferred; ``None`` when no row is there to say, or none can be read."""
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Fault:
    """Something that cannot be read, with more behind it that can. Whoever drives raises
    ``error``, or goes on without what it speaks of."""

    error: FormatError
    rows: int | None
    """Lost by going on, those of faults told before left out; ``None``: unknown."""


Planning: TypeAlias = "Generator[Need | Fault, Sequence[Buffer] | None, FilePlan]"
Decoding: TypeAlias = "Generator[Need | Fault | pa.RecordBatch, Sequence[Buffer] | None, None]"
Reading: TypeAlias = "Generator[Need, Sequence[Buffer] | None, bytes]"
"""A step of planning or decoding that ends with bytes in hand."""


class Encoder(Protocol):
    """Rows → bytes of one object, in pieces that the caller writes one after another."""

    def write(self, batch: pa.RecordBatch) -> bytes: ...

    def finish(self) -> bytes: ...


class Format(Protocol):
    """One file format."""

    name: str
    suffixes: tuple[str, ...]
    compressions: tuple[str, ...]
    """That `encoder` accepts; the first is the default."""

    def sniff(self, head: bytes, tail: bytes) -> bool:
        """Whether these first and last bytes (up to 4 KiB each) are this format's for certain."""
        ...

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Find the columns and cut the object.

        ``columns`` limits and orders the schema; ``types`` overrides what would be inferred.
        A `Fault` here loses nothing yet: decoding will tell it again.
        Raises `CorruptData`, `SchemaMismatch`.
        """
        ...

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        """The split's rows as record batches with exactly ``schema``.

        A `Fault` where rows can be left out, and the rest of them read. Raises `CorruptData`,
        `SchemaMismatch` where nothing behind can be read.
        """
        ...

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder: ...


def fetch(offset: int, length: int, then: tuple[Range, ...] = ()) -> Reading:
    """One range of the object. Raises `CorruptData` when fewer bytes came."""
    buffers = yield Need(((offset, length),), then)
    assert buffers is not None  # a Need is always answered
    [buffer] = buffers
    check_length(buffer, offset, length)
    return bytes(buffer)


def check_length(buffer: Buffer, offset: int, length: int) -> None:
    """Raises `CorruptData` unless ``buffer`` is the ``length`` bytes asked for."""
    if len(buffer) != length:
        raise CorruptData(
            f"{length} bytes at byte {offset} were asked for and {len(buffer)} came: "
            "the object is shorter than when it was listed."
        )


def choose_compression(name: str, known: Sequence[str], asked: str | None) -> str:
    """The compression asked for, else a format's default. Raises `UsageError`."""
    if asked is not None and asked not in known:
        raise UsageError(
            f"{name} cannot be compressed by {asked!r}; choose one of {', '.join(known)}."
        )
    return asked or known[0]


def give_up(fault: Fault) -> None:
    """Raises what ``fault`` tells."""
    raise fault.error


def drive_plan(
    planning: Planning,
    read: Callable[[int, int], Buffer],
    on_fault: Callable[[Fault], None] = give_up,
) -> FilePlan:
    """Answer each need with ``read(offset, length)`` until the plan is made."""
    answer: Sequence[Buffer] | None = None
    try:
        while True:
            item = planning.send(answer)
            answer = None
            if isinstance(item, Fault):
                on_fault(item)
            else:
                answer = [read(offset, length) for offset, length in item.ranges]
    except StopIteration as done:
        plan: FilePlan = done.value
        return plan


def drive(
    decoding: Decoding,
    read: Callable[[int, int], Buffer],
    on_fault: Callable[[Fault], None] = give_up,
) -> Iterator[pa.RecordBatch]:
    """Answer each need with ``read(offset, length)``; yield the record batches."""
    answer: Sequence[Buffer] | None = None
    while True:
        try:
            item = decoding.send(answer)
        except StopIteration:
            return
        answer = None
        if isinstance(item, Need):
            answer = [read(offset, length) for offset, length in item.ranges]
        elif isinstance(item, Fault):
            on_fault(item)
        else:
            yield item
