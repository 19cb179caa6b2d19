"""What a format is: pure functions over bytes.

A format never does I/O. Planning and decoding are generators: they yield a `ReadRequest` for byte
ranges of one object and are sent the bytes. Whoever drives them decides where the bytes come from,
and can so time reading and decoding apart.

A format does not know its object's name. Errors say where in the object; the driver adds the name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError, UsageError
from pipeprof.model import ReadOptions as ReadOptions

PREFETCH_DEPTH = 2
"""Byte ranges in `ReadRequest.prefetch`, at most. One is too few: the first range of the next
object would come too late."""
Buffer: TypeAlias = "bytes | bytearray | memoryview"
ByteRange: TypeAlias = "tuple[int, int]"
"""(offset, length) in bytes of one object."""


@dataclass(frozen=True)
class ReadRequest:
    """Byte ranges of the object that are wanted; answered with one buffer per range, in order."""

    ranges: tuple[ByteRange, ...]
    prefetch: tuple[ByteRange, ...] = ()
    """Each will be requested next, by itself and for certain, unless something is damaged. Whoever
    drives the format may fetch them while ``ranges`` are decoded."""


@dataclass(frozen=True)
class Split:
    """A part of one object that one worker decodes on its own. Together the splits of an object
    cover each row once."""

    start: int
    """In the format's own unit: bytes, or row groups."""
    end: int
    rows: int | None = None
    """Known only to formats that need not read the rows to count them."""
    ranges: tuple[ByteRange, ...] = ()
    """Bytes to fetch in one request, where the format knows them beforehand."""


@dataclass(frozen=True)
class FilePlan:
    """An object's columns and parts."""

    schema: pa.Schema | None
    """As stored, or as inferred; ``None`` when no row is there to say, or none can be read."""
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Fault:
    """Something that cannot be read, with more behind it that can. The driver raises ``error``, or
    continues without the damaged part."""

    error: FormatError
    rows: int | None
    """Rows lost by continuing, apart from those of earlier faults; ``None``: unknown."""


Answer: TypeAlias = "Sequence[Buffer] | None"
Planning: TypeAlias = "Generator[ReadRequest | Fault, Answer, FilePlan]"
Decoding: TypeAlias = "Generator[ReadRequest | Fault | pa.RecordBatch, Answer, None]"
Fetching: TypeAlias = "Generator[ReadRequest, Answer, Buffer]"
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
        """Find the columns and cut the object into splits.

        ``columns`` limits and orders the schema; ``types`` overrides what would be inferred.
        A `Fault` loses nothing here: decoding reports it again.
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


def fetch(offset: int, length: int, prefetch: tuple[ByteRange, ...] = ()) -> Fetching:
    """One byte range of the object. Raises `CorruptData` when fewer bytes came."""
    buffers = yield ReadRequest(((offset, length),), prefetch)
    assert buffers is not None  # a request is always answered
    [buffer] = buffers
    check_length(buffer, offset, length)
    return buffer


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


def raise_fault(fault: Fault) -> None:
    """Raises the fault's error."""
    raise fault.error


def drive_plan(
    planning: Planning,
    read: Callable[[int, int], Buffer],
    on_fault: Callable[[Fault], None] = raise_fault,
) -> FilePlan:
    """Answer each request with ``read(offset, length)`` until the plan is complete."""
    answer: Answer = None
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
