"""Read an Arrow IPC stream, which has no footer: its messages are given to pyarrow one by one."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.arrow.file_layout import checked_names
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import Buffer
from pipeprof.formats.sparse_file import OutsideRanges, SparseFile

CONTINUATION = b"\xff\xff\xff\xff"
"""The first bytes of each message."""
_END = CONTINUATION + bytes(4)
_MOST_MESSAGE_BYTES = 2**31


def begins_stream(head: bytes) -> bool:
    """Return whether ``head`` begins with the message of a schema."""
    length = int.from_bytes(head[4:8], "little")
    root = int.from_bytes(head[8:12], "little")
    return head.startswith(CONTINUATION) and length % 8 == 0 and 0 < root < length


class StreamBatches:
    """Takes blocks of a stream, and gives its record batches. All methods raise `CorruptData`."""

    def __init__(self, columns: Sequence[str] | None = None) -> None:
        """Read these columns; all by default."""
        self.schema: pa.Schema | None = None
        """``None`` until the first message is complete."""
        self._columns = columns
        self._messages = _Messages()
        self._reader: pa.ipc.RecordBatchStreamReader | None = None
        self._rest = bytearray()
        self._at = 0
        """Where in the stream ``_rest`` begins."""
        self._wanted = 0
        """Bytes of ``_rest`` from which its first message may be complete."""
        self._ended = False

    def push(self, block: Buffer) -> Iterator[pa.RecordBatch]:
        """Append ``block``, and yield the record batches that are complete then."""
        self._rest += block
        if len(self._rest) < self._wanted:
            return
        data, begin = bytes(self._rest), 0
        while begin < len(data):
            end, kind = self._message(data, begin)
            if end == begin:
                break
            batch = self._take(memoryview(data)[begin:end], kind)
            begin = end
            if batch is not None:
                yield batch
        del self._rest[:begin]
        self._at += begin

    def finish(self) -> None:
        """Raise `CorruptData` if the stream ends within a message."""
        if self._rest or self.schema is None:
            raise CorruptData(
                f"it ends within the message at byte {self._at}: truncated, or still being written."
            )

    def _message(self, data: bytes, begin: int) -> tuple[int, str]:
        """Return the end and the kind of the message at ``begin``; ``begin`` where it is not
        complete."""
        where = f"the message at byte {self._at + begin}"
        if self._ended:
            raise CorruptData(f"other bytes follow the end of the stream, from {where} on.")
        if data.startswith(_END, begin):
            self._ended = True
            return begin + len(_END), "end"
        if len(data) - begin < max(self._wanted, len(_END)):
            return begin, ""
        file = SparseFile(2**62, [(0, len(data) - begin)], [memoryview(data)[begin:]])
        try:
            with reading(where):
                message = pa.ipc.read_message(pa.PythonFile(file, mode="r"))
        except OutsideRanges as error:
            self._wanted = sum(error.range)
            if self._wanted >= _MOST_MESSAGE_BYTES:
                raise CorruptData(
                    f"{where} says it is {self._wanted} bytes long: damaged."
                ) from None
            return begin, ""
        self._wanted = 0
        return begin + file.tell(), message.type

    def _take(self, message: memoryview, kind: str) -> pa.RecordBatch | None:
        """Give a message to Arrow, and return the record batch that it is."""
        self._messages.pending.append(message)
        with reading(f"the message that ends at byte {self._at + len(message)}"):
            if self._reader is None:
                self.schema = checked_names(pa.ipc.read_schema(pa.BufferReader(message)))
                self._reader = _open(self._messages, self.schema, self._columns)
            elif kind == "record batch":
                batch = self._reader.read_next_batch()
                batch.validate(full=True)
                return batch
        return None


class _Messages(io.RawIOBase):
    """A file of the messages that Arrow has not read yet. No read goes beyond a message."""

    def __init__(self) -> None:
        self.pending: deque[memoryview] = deque()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        if not self.pending:
            return b""
        first = self.pending.popleft()
        if size < len(first):
            self.pending.appendleft(first[size:])
        return first[:size]


def _open(
    messages: _Messages, schema: pa.Schema, columns: Sequence[str] | None
) -> pa.ipc.RecordBatchStreamReader:
    indices = None if columns is None else [schema.names.index(name) for name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=indices, use_threads=False)
    return pa.ipc.open_stream(pa.PythonFile(messages, mode="r"), options=options)
