"""The common columns of Parquet, from the bytes of their pages: numbers, lists of them, words.

Arrow could decode them, and does what is not common. But it takes a dictionary's values one by
one, through buffers of its own; here a kernel writes each number once, where it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.formats.compiled import kernels
from pipeprof.formats.parquet_pages import CODECS, Chunk, Numbers, Pages, UnusualError

_PAGES = "pipeprof.formats.parquet_page_kernels"
_LEVELS = "pipeprof.formats.parquet_level_kernels"
_SNAPPY = "pipeprof.formats.parquet_snappy_kernel"
_NUMBERS = "pipeprof.formats.parquet_number_kernels"
_WORDS = "pipeprof.formats.parquet_word_kernels"
_STORED_AS = {
    "INT32": ("int8", "int16", "int32", "uint8", "uint16", "uint32"),
    "INT64": ("int64", "uint64"),
    "FLOAT": ("float",),
    "DOUBLE": ("double",),
}
"""Stored type → Arrow's types that are its values, or their lower bits."""
_STORED = {"INT32": np.uint32, "INT64": np.uint64, "FLOAT": np.uint32, "DOUBLE": np.uint64}
_MOST_BYTES = 2**31 - 1


def usual(dtype: pa.DataType, stored: str) -> bool:
    """Whether values of this physical type may be read here, to become ``dtype``."""
    if stored == "BYTE_ARRAY":
        return bool(dtype in (pa.string(), pa.binary()))
    value = dtype.value_type if pa.types.is_list(dtype) else dtype
    return str(value) in _STORED_AS.get(stored, ())


def load(stored: str) -> None:
    """Compile, in this process, what reads columns of this physical type: workers that are forked
    inherit it."""
    for module in (_PAGES, _LEVELS, _SNAPPY, _WORDS if stored == "BYTE_ARRAY" else _NUMBERS):
        kernels(module)


def decoded(chunk: Chunk, data: pa.Buffer) -> pa.Array | None:
    """The column whose bytes these are; ``None``: Arrow shall read it, or say what is wrong."""
    headers = kernels(_PAGES)
    if headers is None or chunk.codec not in CODECS:
        return None
    try:
        pages = Pages(chunk, data, headers)
        return _words(chunk, pages) if chunk.stored == "BYTE_ARRAY" else _numbers(chunk, pages)
    except (UnusualError, pa.ArrowException, OSError, MemoryError):
        return None


def _kernels(module: str) -> Any:
    found = kernels(module)
    if found is None:
        raise UnusualError
    return found


def _numbers(chunk: Chunk, pages: Pages) -> pa.Array:
    kernel, stored = _kernels(_NUMBERS), np.dtype(_STORED[chunk.stored])
    lists = pa.types.is_list(chunk.dtype)
    value = chunk.dtype.value_type if lists else chunk.dtype
    if lists and chunk.values > _MOST_BYTES:
        raise UnusualError
    begins = pa.allocate_buffer(4 * chunk.rows + 4 if lists else 0)
    starts = np.frombuffer(begins, np.int32)
    memory = pa.allocate_buffer(chunk.values * stored.itemsize)
    data, table = pages.quick()
    dictionary = np.empty(
        _room(pages.dictionary, pages.kernel, kernel.SLACK, stored.itemsize), np.uint8
    )
    out = np.frombuffer(memory, np.uint8)
    found = kernel.numbers(data, table, chunk.deep, dictionary, starts[:-1], out, stored.itemsize)
    if found != (chunk.rows if lists else 0):
        raise UnusualError
    if value.bit_width < 8 * stored.itemsize:
        memory = pa.py_buffer(np.frombuffer(memory, stored).astype(f"u{value.bit_width // 8}"))
    values = pa.Array.from_buffers(value, chunk.values, [None, memory], 0)
    if not lists:
        return values
    if starts[0]:
        raise UnusualError
    starts[-1] = chunk.values
    return pa.Array.from_buffers(chunk.dtype, chunk.rows, [None, begins], 0, children=[values])


def _room(dictionary: Sequence[int] | None, pages: Any, slack: int, itemsize: int) -> int:
    """Bytes: a power of two values, which all places are below, and what unpacking needs."""
    if dictionary is None:
        return slack
    count: int = dictionary[pages.COUNT]
    if dictionary[pages.SIZE] != count * itemsize:
        raise UnusualError
    return (itemsize << max(1, (count - 1).bit_length())) + slack


def _words(chunk: Chunk, pages: Pages) -> pa.Array:
    kernel, levels, field = _kernels(_WORDS), _kernels(_LEVELS), pages.kernel
    known, count = np.empty(0, np.uint8), 0
    if pages.dictionary is not None:
        known, count = pages.unpacked(pages.dictionary), pages.dictionary[field.COUNT]
    if not 4 * count <= len(known) <= _MOST_BYTES - 4:
        raise UnusualError
    starts = np.empty(count + 1, np.int32)
    if not kernel.begin(known, starts):
        raise UnusualError
    size, at, found = 0, 0, dict[int, Numbers]()
    headers = pages.data.tolist()
    for number, page in enumerate(headers):
        if page[field.ENCODING] == field.PLAIN:
            size += page[field.SIZE]
            continue
        found[number] = places = np.empty(page[field.COUNT], np.int32)
        usual = page[field.ENCODING] in (field.PLACES, field.PLACES_TOO)
        if not usual or not kernel.unpacked(*pages.values(page, levels), count, places):
            raise UnusualError
        size += kernel.size_of(starts, places)
    if size > _MOST_BYTES:
        raise UnusualError
    ends, memory = pa.allocate_buffer(4 * chunk.rows + 4), pa.allocate_buffer(size + kernel.SLACK)
    offsets, out = np.frombuffer(ends, np.int32), np.frombuffer(memory, np.uint8)
    offsets[0] = 0
    for number, page in enumerate(headers):
        part = offsets[at : at + page[field.COUNT] + 1]
        at += page[field.COUNT]
        if page[field.ENCODING] != field.PLAIN:
            kernel.gather_words(known, starts, found.pop(number), part, out)
        elif not kernel.words(*pages.values(page, levels), part, out):
            raise UnusualError
    used = memory.slice(0, int(offsets[-1]))
    return pa.Array.from_buffers(chunk.dtype, chunk.rows, [None, ends, used], 0)
