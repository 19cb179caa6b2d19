"""The interface of a reader: a library that decodes whole objects from memory."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.decompress import Inflater, recognise

_PIECE_BYTES = 2**22


class Reader(Protocol):
    """Decodes objects with one library. In a worker it uses one thread."""

    name: str
    fork_safe: bool
    """Whether workers may be forked while the parent has the library in use."""

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        """Return all rows of an object, with at least the columns of ``schema``.

        Columns have the types of ``schema``, or others of the same values. What text formats cannot
        hold otherwise is text in ``schema``: lists and bytes. Raises whatever the library does.
        """
        ...


def plain_bytes(data: Buffer) -> Buffer:
    """Return the plain bytes of an object that may be compressed as a whole. Raises
    `CorruptData`."""
    codec = recognise(bytes(data[:4]))
    if codec is None:
        return data
    inflater = Inflater(codec)
    inflater.push(data)
    pieces = list(iter(lambda: inflater.pull(_PIECE_BYTES), b""))
    return b"".join([*pieces, inflater.finish()])
