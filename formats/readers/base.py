"""The interface of a reader: a library that decodes whole objects from memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.decompress import Codec, Inflater, recognise

_PIECE_BYTES = 2**22
Pixels = np.ndarray[Any, np.dtype[np.uint8]]
"""An image. [height, width, 3], red, green and blue."""


class Library(Protocol):
    """A library that decodes objects. In a worker it uses one thread."""

    name: str
    module: str
    """What Python imports of it."""
    fork_safe: bool
    """Whether workers may be forked while the parent has the library in use."""


def unforkable(library: Library) -> str | None:
    """Return the module that must not be in use when workers are forked, see `Decoder`."""
    return None if library.fork_safe else library.module


class Reader(Library, Protocol):
    """Decodes objects into columns."""

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        """Return all rows of an object, with at least the columns of ``schema``.

        Columns have the types of ``schema``, or others of the same values. What text formats cannot
        hold otherwise is text in ``schema``: lists and bytes. Raises whatever the library does.
        """
        ...


class ImageReader(Library, Protocol):
    """Decodes images into pixels."""

    def pixels(self, data: Buffer) -> Pixels:
        """Return an image as it is stored, without turning it. Raises whatever the library does."""
        ...


def plain_bytes(data: Buffer, codec: Codec | None = None) -> Buffer:
    """Return the plain bytes of an object that is compressed by ``codec``, or else may be by gzip
    or zstd. Raises `CorruptData`."""
    codec = codec or recognise(bytes(data[:4]))
    if codec is None:
        return data
    inflater = Inflater(codec)
    inflater.push(data)
    pieces = list(iter(lambda: inflater.pull(_PIECE_BYTES), b""))
    return b"".join([*pieces, inflater.finish()])


@contextmanager
def file_in_memory(data: Buffer) -> Iterator[str]:
    """Yield the path of a file in memory that holds ``data``, for a library that opens its files
    itself."""
    with open(os.memfd_create("pipeprof"), "wb") as file:
        file.write(data)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
