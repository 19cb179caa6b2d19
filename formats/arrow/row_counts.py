"""Count the rows of an Arrow IPC file without its data: the head of each record batch says them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pyarrow as pa

from pipeprof.formats.arrow.file_layout import FileLayout
from pipeprof.formats.arrow.stream_batches import CONTINUATION
from pipeprof.formats.arrow_errors import reading
from pipeprof.formats.base import Answer, ReadRequest
from pipeprof.formats.sparse_file import SparseFile, coalesced

_MOST_HEAD_BYTES = 2**16
"""Most bytes that are fetched of a head: of a single column, Arrow asks for it with the data."""


def count_rows(
    layout: FileLayout, gap_bytes: int
) -> Generator[ReadRequest, Answer, list[int | None]]:
    """Return the rows of each record batch; ``None`` where its head is missing or too long. The
    heads are requested. Raises `CorruptData`."""
    heads = [(start, min(length, _MOST_HEAD_BYTES)) for start, length in layout.heads]
    ranges = coalesced([head for head in heads if head[1]], gap_bytes)
    answer = (yield ReadRequest(tuple(ranges))) if ranges else ()
    assert answer is not None  # a request is always answered
    file, rows = SparseFile(sum(layout.footer), ranges, answer), list[int | None]()
    for (start, length), (_, whole) in zip(heads, layout.batches, strict=True):
        file.seek(start)
        with reading(f"the head of record batch {len(rows)}"):
            rows.append(_rows_of(file.read(length), whole) if length else None)
    return rows


def _rows_of(head: memoryview, length: int) -> int | None:
    """Return the rows of a record batch that is ``length`` bytes long and begins with ``head``."""
    prefix = 8 if bytes(head[:4]) == CONTINUATION else 4  # before Arrow 0.15
    if prefix + int.from_bytes(head[prefix - 4 : prefix], "little") > len(head):
        return None
    # Arrow reads a message only with its body; without columns, a batch still has its length
    data = np.zeros(length, np.uint8)
    data[: len(head)] = head
    message = pa.ipc.read_message(pa.py_buffer(data))
    return int(pa.ipc.read_record_batch(message, pa.schema([])).num_rows)
