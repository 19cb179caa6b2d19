"""Draw the rows of data sets, so that row i of a kind and seed is the same in every data set.

Rows are drawn in blocks of a fixed number of rows. Each block has its own random generator, seeded
by seed, kind and block. So neither format, size nor number of shards changes a row, and a longer
data set begins with the shorter one.
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
"""Version of the rows. Raise it when any kind's rows change, so that shards are never mixed."""


@dataclass(frozen=True)
class Kind:
    """One kind of data set, such as tables or images."""

    name: str
    schema: pa.Schema
    mean_row_bytes: int
    """Approximate bytes of a row in RAM, as Arrow buffers."""
    block_rows: int
    """Number of rows that are drawn together."""
    draw: Callable[[np.random.Generator, npt.NDArray[np.int64], int], dict[str, Any]]
    """Returns the columns of a block, in the schema's order. Its arguments are the block's random
    generator, the numbers of its rows, and the seed of the data set."""

    def block(self, seed: int, index: int) -> pa.RecordBatch:
        """Return rows ``index * block_rows`` to ``(index + 1) * block_rows``."""
        numbers = np.arange(index * self.block_rows, (index + 1) * self.block_rows)
        columns = self.draw(block_random(self.name, seed, index), numbers, seed)
        return pa.RecordBatch.from_pydict(columns, self.schema)


def get(name: str) -> Kind:
    """Return the kind called ``name``. Raises `UsageError`."""
    if name not in KINDS:
        raise UsageError(f"{name!r} is not a kind of data set; choose one of {', '.join(KINDS)}.")
    kind: Kind = import_module(f"pipeprof.bench_data.{name}").kind
    return kind


def block_random(kind: str, seed: int, block: int) -> np.random.Generator:
    """Return the random generator of one block."""
    return np.random.default_rng((seed, zlib.crc32(kind.encode()), block))


def batches(kind: Kind, seed: int, start: int, stop: int, size: int) -> Iterator[pa.RecordBatch]:
    """Yield rows ``start`` to ``stop`` in batches of ``size`` rows; the last may be shorter.

    About one batch and one block are in memory at a time.
    """
    return rebatch(_blocks(kind, seed, start, stop), size)


def _blocks(kind: Kind, seed: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    row = start
    while row < stop:
        index, skip = divmod(row, kind.block_rows)
        block = kind.block(seed, index)[skip : skip + stop - row]
        row += block.num_rows
        yield block


def rebatch(parts: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``parts`` in batches of ``size`` rows; the last may be shorter."""
    pending: list[pa.RecordBatch] = []
    missing = size
    for part in parts:
        while part.num_rows >= missing:
            yield _concatenate([*pending, part[:missing]])
            pending, part, missing = [], part[missing:], size
        if part.num_rows:
            pending.append(part)
            missing -= part.num_rows
    if pending:
        yield _concatenate(pending)


def _concatenate(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined: pa.RecordBatch = pa.Table.from_batches(parts).combine_chunks().to_batches()[0]
    return joined
