"""The interface of a format: pure functions over bytes.

A format never does I/O. Planning and decoding are generators: they yield a `ReadRequest` for byte
ranges of one object and are sent the bytes. The driver of a format decides where the bytes come
from, and so it can time reading and decoding apart.

A format does not know the name of its object. Errors say where in the object; the driver adds the
name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from pipeprof.errors import CorruptData, FormatError, UsageError
from pipeprof.model import ReadOptions as ReadOptions

PREFETCH_DEPTH = 2
"""The most byte ranges in `ReadRequest.prefetch`. One is too few: the first range of the next
object would come too late."""
SMALLEST = 1
"""`ReadOptions.split_bytes` for splits that are the smallest parts that can be read alone. Their
rows are counted then, even if that takes a request."""
Buffer: TypeAlias = "bytes | bytearray | memoryview"
ByteRange: TypeAlias = "tuple[int, int]"
"""(offset, length) in bytes of one object."""


@dataclass(frozen=True)
class ReadRequest:
    """A request for byte ranges of the object. It is answered with one buffer per range, in
    order."""

    ranges: tuple[ByteRange, ...]
    prefetch: tuple[ByteRange, ...] = ()
    """Ranges that are certain to be requested next, one by one, unless something is damaged. The
    driver may fetch them while ``ranges`` are decoded."""


@dataclass(frozen=True)
class Split:
    """A part of an object that one worker decodes by itself. The splits of an object cover each row
    exactly once."""

    start: int
    """Where the split begins, in the format's own unit: bytes, or row groups."""
    end: int
    rows: int | None = None
    """The number of rows, where a format can count them without reading them."""
    ranges: tuple[ByteRange, ...] = ()
    """Bytes to fetch in one request, where the format knows them in advance."""
    folder: int = 0
    """The number of the object's folder among those of the data set, where it is a column."""


@dataclass(frozen=True)
class FilePlan:
    """The columns and splits of an object."""

    schema: pa.Schema | None
    """The columns as stored, or as inferred. ``None`` when there is no row, or none can be read."""
    splits: tuple[Split, ...]
    left_out: tuple[pa.Field, ...] = ()
    """Columns that are not in ``schema``, as they have none of the types there are. Only where no
    columns were asked for by name."""
    by_folder: bool = False
    """Whether a column is `Split.folder`, which is known once all objects are."""
    faults: tuple[Fault, ...] = ()
    """The damage that planning left out."""


@dataclass(frozen=True)
class Fault:
    """Damage behind which more can be read. The driver raises ``error``, or continues without the
    damaged part."""

    error: FormatError
    rows: int | None
    """Rows lost by continuing, not counting those of earlier faults; ``None`` is unknown."""


Answer: TypeAlias = "Sequence[Buffer] | None"
Planning: TypeAlias = "Generator[ReadRequest | Fault, Answer, FilePlan]"
Decoding: TypeAlias = "Generator[ReadRequest | Fault | pa.RecordBatch, Answer, None]"
Fetching: TypeAlias = "Generator[ReadRequest, Answer, Buffer]"
"""A step of planning or decoding that returns the bytes it requested."""


class Encoder(Protocol):
    """Turns rows into the bytes of one object, in pieces that the caller writes one after
    another."""

    def write(self, batch: pa.RecordBatch) -> bytes: ...

    def finish(self) -> bytes: ...


class Decoder(Protocol):
    """What finds the columns of objects, and turns their bytes into rows."""

    @property
    def name(self) -> str:
        """The name of the format."""
        ...

    @property
    def unforkable(self) -> str | None:
        """The module of a library whose threads do not survive a fork; ``None`` if there is none.
        Once it is imported, workers must be spawned."""
        ...

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Find the columns, and cut the object into splits.

        ``columns`` limits and orders the schema; ``types`` overrides what would be inferred. A
        `Fault` loses nothing here, as decoding reports it again. Raises `CorruptData`,
        `SchemaMismatch`.
        """
        ...

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        """Yield the rows of the split as record batches of exactly ``schema``.

        Yield a `Fault` where rows are damaged and the rest can be read. Raises `CorruptData` or
        `SchemaMismatch` where nothing behind the damage can be read.
        """
        ...


class Format(Decoder, Protocol):
    """A file format."""

    suffixes: tuple[str, ...]
    compressions: tuple[str, ...]
    """The compressions that `encoder` accepts; the first is the default."""
    row_groups: bool
    """Whether each `Encoder.write` makes a group of rows, and splits are runs of such groups."""
    optional_columns: bool
    """Whether a row may lack a column, and so an object as well. It is null there. Then `plan` has
    each column that is both in ``columns`` and in ``types``, whether the object has it or not."""
    cut_anywhere: bool
    """Whether a split may begin at any byte. Then nobody knows its rows before they are read."""

    def sniff(self, head: bytes, tail: bytes) -> bool:
        """Return whether these first and last bytes (up to 4 KiB each) are certainly of this
        format."""
        ...

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder: ...


def fetch(offset: int, length: int, prefetch: tuple[ByteRange, ...] = ()) -> Fetching:
    """Request one byte range of the object. Raises `CorruptData` when fewer bytes came."""
    [buffer] = yield from fetch_ranges(((offset, length),), prefetch)
    return buffer


def fetch_ranges(
    ranges: tuple[ByteRange, ...], prefetch: tuple[ByteRange, ...] = ()
) -> Generator[ReadRequest, Answer, Sequence[Buffer]]:
    """Request several byte ranges at once. Raises `CorruptData` when fewer bytes came."""
    buffers = yield ReadRequest(ranges, prefetch)
    assert buffers is not None  # a request is always answered
    for buffer, (offset, length) in zip(buffers, ranges, strict=True):
        check_length(buffer, offset, length)
    return buffers


def check_length(buffer: Buffer, offset: int, length: int) -> None:
    """Raises `CorruptData` unless ``buffer`` is the ``length`` bytes asked for."""
    if len(buffer) != length:
        raise CorruptData(
            f"{length} bytes at byte {offset} were asked for and {len(buffer)} came: "
            "the object is shorter than when it was listed."
        )


def choose_compression(name: str, known: Sequence[str], asked: str | None) -> str:
    """Return the compression asked for, else the format's default. Raises `UsageError`."""
    if asked is not None and asked not in known:
        raise UsageError(
            f"{name} cannot be compressed by {asked!r}; choose one of {', '.join(known)}."
        )
    return asked or known[0]


def raise_fault(fault: Fault) -> None:
    """Raise the error of the fault."""
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
