"""The common columns of Parquet, from the bytes of their pages: numbers, lists of them, words.

Arrow could decode them, and does what is not common. But it takes a dictionary's values one by
one, through buffers of its own; here a kernel writes each number once, where it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.formats.compiled import kernels
from pipeprof.formats.parquet_pages import CODECS, Chunk, Numbers, Pages, UnusualError, Values, find
from pipeprof.formats.types import as_bits

_PAGES = "pipeprof.formats.parquet_page_kernels"
_LEVELS = "pipeprof.formats.parquet_level_kernels"
_SNAPPY = "pipeprof.formats.parquet_snappy_kernel"
_PLACES = "pipeprof.formats.parquet_place_kernels"
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


def load(stored: Collection[str]) -> None:
    """Compile, in this process, what reads columns of these physical types: workers that are forked
    inherit it."""
    words = {_LEVELS, _PLACES, _WORDS} if "BYTE_ARRAY" in stored else set()
    numbers = {_NUMBERS} if set(stored) - {"BYTE_ARRAY"} else set()
    for module in sorted({_PAGES, _SNAPPY} | words | numbers):
        kernels(module)


def decoded(chunks: Sequence[Chunk], data: Sequence[pa.Buffer]) -> list[pa.Array | None]:
    """The columns whose bytes these are; ``None``: Arrow shall read it, or say what is wrong.

    What there is to do for all of them is done step by step: code that runs between two columns'
    bytes is not in the caches any more.
    """
    headers, arrays = kernels(_PAGES), list[pa.Array | None]([None] * len(chunks))
    usual = [n for n, chunk in enumerate(chunks) if chunk.codec in CODECS]
    if headers is None or not usual:
        return arrays
    mine = [data[n] for n in usual]
    told, table = find([chunks[n] for n in usual], mine, headers)
    numbers: dict[int, _Numbers] = {}
    for n, bytes_, known in zip(usual, mine, told, strict=True):
        with suppress(UnusualError, pa.ArrowException, OSError, MemoryError):
            pages = Pages(chunks[n], bytes_, known, table, headers)
            if chunks[n].stored == "BYTE_ARRAY":
                arrays[n] = _words(chunks[n], pages)
            else:
                numbers[n] = _Numbers(chunks[n], bytes_, known, pages)
    if numbers and (kernel := kernels(_NUMBERS)):
        for n, found in _read(numbers, table, kernel).items():
            arrays[n] = numbers[n].array(found)
    return arrays


def _read(columns: Mapping[int, _Numbers], table: Numbers, kernel: Any) -> dict[int, int]:
    """What `kernel`, which is `parquet_number_kernels`, says of each."""
    rows = np.array([column.told for column in columns.values()], np.int64)
    kernel.columns(rows, table)
    found = dict(zip(columns, rows[:, kernel.FOUND].tolist(), strict=True))
    lacking = {n: columns[n].with_nulls() for n, what in found.items() if what == kernel.LACKING}
    return found | _read(lacking, table, kernel) if lacking else found


def _kernels(module: str) -> Any:
    found = kernels(module)
    if found is None:
        raise UnusualError
    return found


class _Numbers:
    """A column of numbers, or of lists of them, with the memory that it will be in."""

    def __init__(self, chunk: Chunk, data: pa.Buffer, told: Sequence[int], pages: Pages) -> None:
        self._chunk, self._stored = chunk, np.dtype(_STORED[chunk.stored])
        self._lists = pa.types.is_list(chunk.dtype)
        if self._lists and chunk.values > _MOST_BYTES:
            raise UnusualError
        self._data = pages.quick() or data
        self._starts = pa.allocate_buffer(4 * chunk.rows + 4 if self._lists else 0)
        self._memory = pa.allocate_buffer(chunk.values * self._stored.itemsize)
        self._valid: Numbers | None = None
        self.told = (
            *(self._data.address, self._data.size, *told[2:]),
            *(chunk.deep, chunk.rows * self._lists, self._starts.address),
            *(self._memory.address, self._stored.itemsize, 0, -1),
        )
        """As `parquet_number_kernels.columns` is told of it."""

    def with_nulls(self) -> _Numbers:
        """Itself, with memory to note which values are there: few columns need it."""
        self._valid = np.empty(self._chunk.values, np.uint8)
        self.told = (*self.told[:-2], self._valid.ctypes.data, -1)
        return self

    def array(self, found: int) -> pa.Array | None:
        """By what the kernel says."""
        chunk, memory = self._chunk, self._memory
        if found != chunk.rows * self._lists:
            return None
        value = chunk.dtype.value_type if self._lists else chunk.dtype
        if value.bit_width < 8 * self._stored.itemsize:
            wide = np.frombuffer(memory, self._stored)
            memory = pa.py_buffer(wide.astype(f"u{value.bit_width // 8}"))
        if self._valid is not None:
            return pa.Array.from_buffers(value, chunk.values, [as_bits(self._valid), memory])
        values = pa.Array.from_buffers(value, chunk.values, [None, memory], 0)
        if not self._lists:
            return values
        starts = np.frombuffer(self._starts, np.int32)
        if starts[0]:
            return None
        starts[-1] = chunk.values
        buffers = [None, self._starts]
        return pa.Array.from_buffers(chunk.dtype, chunk.rows, buffers, 0, children=[values])


def _words(chunk: Chunk, pages: Pages) -> pa.Array:
    kernel, levels, field = _kernels(_WORDS), _kernels(_LEVELS), pages.kernel
    dictionary, headers = pages.each()
    known, count = np.empty(0, np.uint8), 0
    if dictionary is not None:
        known, count = pages.unpacked(dictionary), dictionary[field.COUNT]
    found, size = _by_place(pages, headers, known, count)
    ends, memory = pa.allocate_buffer(4 * chunk.rows + 4), pa.allocate_buffer(size + kernel.ROOM)
    offsets, out = np.frombuffer(ends, np.int32), np.frombuffer(memory, np.uint8)
    offsets[0], at, masks = 0, 0, list[tuple[int, Numbers]]()
    for page, spans in zip(headers, found, strict=True):
        part = offsets[at : at + page[field.COUNT] + 1]
        # what snappy packed is unpacked right behind where its words go
        behind = out[int(part[0]) + kernel.APART :]
        values, words = spans or (pages.values(page, levels, behind), None)
        there = part[: values.there + 1]
        if words is not None:
            kernel.gather_words(known, words, there, out)
        elif not kernel.words(values.data, values.start, there, out):
            raise UnusualError
        if values.valid is not None:
            levels.spread_ends(part, values.valid, values.there)
            masks.append((at, values.valid))
        at += page[field.COUNT]
    used = memory.slice(0, int(offsets[-1]))
    return pa.Array.from_buffers(chunk.dtype, chunk.rows, [_validity(masks, at), ends, used])


def _by_place(
    pages: Pages, headers: Sequence[Sequence[int]], known: Numbers, count: int
) -> tuple[list[tuple[Values, Numbers] | None], int]:
    """Where in a dictionary of ``count`` words, ``known``, lie those of each page, ``None`` where
    it has its own; and at most how many bytes those of all come to."""
    kernel, levels, field = _kernels(_WORDS), _kernels(_LEVELS), pages.kernel
    if not 4 * count <= len(known) <= _MOST_BYTES:
        raise UnusualError
    words = np.empty(1 << max(1, (count - 1).bit_length()), np.uint64)
    if not kernel.spans(known, words, count):
        raise UnusualError
    size, found = 0, list[tuple[Values, Numbers] | None]()
    for page in headers:
        if page[field.ENCODING] == field.PLAIN:
            size += page[field.SIZE]
            found.append(None)
            continue
        values = pages.values(page, levels)
        data, taken = values.data, np.empty(values.there, np.uint64)
        usual = page[field.ENCODING] in (field.PLACES, field.PLACES_TOO)
        places = (data, values.start, len(data), words, count, taken)
        if not usual or (values.there and not _kernels(_PLACES).taken(*places)):
            raise UnusualError
        size += kernel.size_of(taken)
        found.append((values, taken))
    if size > _MOST_BYTES:
        raise UnusualError
    return found, size


def _validity(masks: Sequence[tuple[int, Numbers]], rows: int) -> pa.Buffer | None:
    """Of so many rows. ``masks``: from which on, which are there; the others all are."""
    if not masks:
        return None
    valid = np.ones(rows, np.uint8)
    for first, mask in masks:
        valid[first : first + len(mask)] = mask
    return as_bits(valid)
