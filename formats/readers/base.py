"""The interface of a reader: a library that decodes whole objects from memory."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from pipeprof.formats.base import Buffer


class Reader(Protocol):
    """Decodes objects with one library. It uses one thread, as a worker does."""

    name: str
    fork_safe: bool
    """Whether workers may be forked while the parent has the library in use."""

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        """Return all rows of an object, with at least the columns of ``schema``.

        Columns have the types of ``schema``, or others of the same values. What text formats cannot
        hold otherwise is text in ``schema``: lists and bytes. Raises whatever the library does.
        """
        ...


def without_gzip(data: Buffer) -> Any:
    """Return the plain bytes of an object that may be compressed as a whole."""
    import gzip

    return gzip.decompress(data) if bytes(data[:2]) == b"\x1f\x8b" else data
