"""Find where the record batches of an Arrow IPC file lie.

The footer knows, and pyarrow does not say. But to get a batch it asks for its bytes. So it is given
a file of which only the footer is there, and what it asks for is noted.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import Answer, Buffer, ByteRange, ReadRequest
from pipeprof.formats.sparse_file import OutsideRanges, RangeRecorder, SparseFile

MAGIC = b"ARROW1"
TRAILER_BYTES = 4 + len(MAGIC)
"""Length of the footer, and the magic, which end a file."""
_MOST_DICTIONARIES = 10_000


@dataclass(frozen=True)
class FileLayout:
    """The columns of a file, and the bytes of what it consists of."""

    schema: pa.Schema
    footer: ByteRange
    """With its length and the magic."""
    dictionaries: tuple[ByteRange, ...]
    batches: tuple[ByteRange, ...]
    heads: tuple[ByteRange, ...]
    """What says, of each batch, where its columns lie."""

    @property
    def shared(self) -> tuple[ByteRange, ...]:
        """The bytes that each batch needs besides its own."""
        return self.footer, *self.dictionaries


def footer_range(tail: bytes, size: int) -> ByteRange:
    """Return the bytes of the footer, from the last ones of the file. Raises `CorruptData`."""
    if len(tail) < TRAILER_BYTES or not tail.endswith(MAGIC):
        raise CorruptData(
            f"it does not end with {MAGIC.decode()}: truncated, or still being written."
        )
    length = int.from_bytes(tail[-TRAILER_BYTES : -len(MAGIC)], "little") + TRAILER_BYTES
    if length > size:
        raise CorruptData(
            f"its footer says it is {length - TRAILER_BYTES} bytes long, more than the {size} "
            "bytes of the file: damaged."
        )
    return size - length, length


def find_layout(
    size: int, footer: ByteRange, data: bytes
) -> Generator[ReadRequest, Answer, FileLayout]:
    """Return the layout of the file whose footer is ``data``; its dictionaries are requested.
    Raises `CorruptData`."""
    ranges, buffers = [footer], list[Buffer]([data])
    with reading("the footer"):
        reader = open_file(SparseFile(size, ranges, buffers))
        schema, count = checked_names(reader.schema), reader.num_record_batches
    if not schema.names:
        return FileLayout(schema, footer, (), (), ())
    while len(ranges) <= _MOST_DICTIONARIES:
        batches = _asked(size, ranges, buffers, count)
        # Arrow asks for the head alone where it wants few columns, but never of a dictionary
        heads = _asked(size, ranges, buffers, count, columns=[0])
        complete = heads != batches or (0, 0) in batches or not batches
        if complete or not any(_is_encoded(field.type) for field in schema):
            _check_inside(footer, batches)
            return FileLayout(schema, footer, tuple(ranges[1:]), tuple(batches), tuple(heads))
        answer = yield ReadRequest((batches[0],))
        assert answer is not None  # a request is always answered
        ranges.append(batches[0])
        buffers += answer
    raise CorruptData(f"its footer names more than {_MOST_DICTIONARIES} dictionaries: damaged.")


def open_file(
    file: SparseFile, columns: Sequence[int] | None = None
) -> pa.ipc.RecordBatchFileReader:
    """Open a file, to read the columns of these numbers; all by default."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_file(pa.PythonFile(file, mode="r"), options=options)


def checked_names(schema: pa.Schema) -> pa.Schema:
    """Return ``schema``. Raises `ValueError` where a name in it is not UTF-8, which only reading it
    shows."""
    pending = list(schema)
    while pending:
        field = pending.pop()
        assert isinstance(field.name, str)
        pending += [field.type.field(index) for index in range(field.type.num_fields)]
    return schema


def missing_ranges(
    size: int,
    ranges: Sequence[ByteRange],
    buffers: Sequence[Buffer],
    batches: Iterable[int],
    columns: Sequence[int],
) -> list[ByteRange]:
    """Return what Arrow asks for, beyond ``ranges``, to read these columns of these batches."""
    file = RangeRecorder(size, ranges, buffers)
    with reading("the footer"):
        reader = open_file(file, columns)
    for batch in batches:
        with suppress(CorruptData), reading("zeros"):
            reader.get_batch(batch)
    return file.missing


def _asked(
    size: int,
    ranges: Sequence[ByteRange],
    buffers: Sequence[Buffer],
    count: int,
    columns: Sequence[int] | None = None,
) -> list[ByteRange]:
    """Return what Arrow asks for first to read each batch."""
    file = SparseFile(size, ranges, buffers)
    with reading("the footer"):
        reader = open_file(file, columns)
        return [_first_range(reader, batch) for batch in range(count)]


def _first_range(reader: pa.ipc.RecordBatchFileReader, batch: int) -> ByteRange:
    try:
        reader.get_batch(batch)
    except OutsideRanges as error:
        return error.range
    return 0, 0  # it has no bytes of its own


def _is_encoded(dtype: pa.DataType) -> bool:
    """Return whether a type has a dictionary, at any depth."""
    if pa.types.is_dictionary(dtype):
        return True
    if isinstance(dtype, pa.BaseExtensionType):
        return _is_encoded(dtype.storage_type)
    return any(_is_encoded(dtype.field(index).type) for index in range(dtype.num_fields))


def _check_inside(footer: ByteRange, batches: Sequence[ByteRange]) -> None:
    for number, (start, length) in enumerate(batches):
        if start < 0 or length < 0 or start + length > footer[0]:
            raise CorruptData(
                f"the footer is damaged: it places record batch {number} at byte {start}, {length} "
                "bytes long, where none can be."
            )
