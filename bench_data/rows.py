"""Where rows come from: logical row i of a kind and seed is the same in every data set.

Rows are drawn in blocks of a fixed number of rows, each from a random generator of its own that
is keyed by seed, kind and block. So neither format, size nor number of shards changes a row, and
a longer data set begins with the shorter one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.bench_data import KINDS
from pipeprof.errors import UsageError

GENERATOR = 1
"""Raised whenever any kind's rows change, so that old shards are never mixed with new ones."""


@dataclass(frozen=True)
class Kind:
    """One kind of data set."""

    name: str
    schema: pa.Schema
    mean_row_bytes: int
    """About the bytes that a row takes in RAM, as Arrow buffers."""
    block_rows: int
    draw: Callable[[np.random.Generator, npt.NDArray[np.int64], int], dict[str, Any]]
    """Given the block's random generator, the numbers of its rows, and the seed of the data set:
    the columns, in their order."""

    def block(self, seed: int, index: int) -> pa.RecordBatch:
        """Rows ``index * block_rows`` up to ``(index + 1) * block_rows``."""
        numbers = np.arange(index * self.block_rows, (index + 1) * self.block_rows)
        columns = self.draw(random_of(self.name, seed, index), numbers, seed)
        return pa.RecordBatch.from_pydict(columns, self.schema)


def get(name: str) -> Kind:
    """The kind called ``name``. Raises `UsageError`."""
    if name not in KINDS:
        raise UsageError(f"{name!r} is not a kind of data set; there are {', '.join(KINDS)}.")
    kind: Kind = import_module(f"pipeprof.bench_data.{name}").kind
    return kind


def random_of(kind: str, seed: int, block: int) -> np.random.Generator:
    """The random generator of one block."""
    return np.random.default_rng((seed, zlib.crc32(kind.encode()), block))


def batches(kind: Kind, seed: int, start: int, stop: int, size: int) -> Iterator[pa.RecordBatch]:
    """Rows ``start`` to ``stop`` in batches of ``size`` rows; the last may be shorter.

    Holds about one batch and one block at a time.
    """
    return regrouped(_blocks(kind, seed, start, stop), size)


def _blocks(kind: Kind, seed: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    row = start
    while row < stop:
        index, skip = divmod(row, kind.block_rows)
        block = kind.block(seed, index)[skip : skip + stop - row]
        row += block.num_rows
        yield block


def regrouped(parts: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of ``size`` rows; the last may be shorter."""
    waiting: list[pa.RecordBatch] = []
    missing = size
    for part in parts:
        while part.num_rows >= missing:
            yield _joined([*waiting, part[:missing]])
            waiting, part, missing = [], part[missing:], size
        if part.num_rows:
            waiting.append(part)
            missing -= part.num_rows
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined: pa.RecordBatch = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return joined
