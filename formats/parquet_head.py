"""What a footer of Parquet says of all row groups: columns, their types, who wrote the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.errors import CorruptData
from pipeprof.formats.parquet_columns import usual
from pipeprof.formats.types import first_line

_KEPT = 4


class Plain(NamedTuple):
    """A column that `parquet_columns` reads, where its chunks are usual."""

    dtype: pa.DataType
    leaf: int
    """Which stored one it is."""
    stored: str
    """Its physical type."""
    repeated: int
    """The highest level of repetition: 1 of lists."""
    deep: int
    """The highest level of definition."""


class Head:
    """Made by `head_of`. Everything here raises `CorruptData`."""

    def __init__(self, data: bytes) -> None:
        with reading("the footer"):
            self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(data))
            self.schema: pa.Schema = self.metadata.schema.to_arrow_schema()
            """As Arrow reads it."""
            self.names: Sequence[str] = self.schema.names
            self.created_by: str = self.metadata.created_by or ""
        self._plain: dict[str, Plain | None] = {}

    @cached_property
    def leaves(self) -> Mapping[str, Sequence[int]]:
        """Which stored columns Arrow reads for a name: it takes every part of a path for one."""
        names, stored = self.names, self.metadata.schema
        nested = self.metadata.num_columns != len(names) or any(
            dtype.num_fields for dtype in set(self.schema.types)
        )
        if not nested and "." not in "".join(names):
            return {name: [index] for index, name in enumerate(names)}
        leaves: dict[str, list[int]] = {}
        for index in range(self.metadata.num_columns):
            parts = stored.column(index).path.split(".")
            for depth in range(1, len(parts) + 1):
                leaves.setdefault(".".join(parts[:depth]), []).append(index)
        return leaves

    def plain(self, name: str) -> Plain | None:
        """The column of this name, if it is of a common kind."""
        if name not in self._plain:
            self._plain[name] = self._find(name)
        return self._plain[name]

    def _find(self, name: str) -> Plain | None:
        leaves = self.leaves.get(name, ())
        if len(leaves) != 1:
            return None
        [leaf] = leaves
        column, dtype = self.metadata.schema.column(leaf), self.schema.field(name).type
        lists = pa.types.is_list(dtype)
        alone = column.path.startswith(f"{name}.") if lists else column.path == name
        repeated, deep = column.max_repetition_level, column.max_definition_level
        common = alone and repeated == lists and deep <= 1 + 2 * lists
        if not common or not usual(dtype, column.physical_type):
            return None
        return Plain(dtype, leaf, column.physical_type, repeated, deep)


@lru_cache(_KEPT)
def head_of(data: bytes) -> Head:
    """Of a footer, with its length and magic; files of a data set often have the same, but for
    their row groups."""
    return Head(data)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever Arrow says of damaged bytes into `CorruptData`."""
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        OverflowError,
        IndexError,
        KeyError,
        MemoryError,
    ) as error:
        if "decrypt" in str(error):
            raise CorruptData(
                "columns are encrypted, which is not read; ask for others with columns=…"
            ) from None
        raise CorruptData(f"{what} is damaged ({first_line(error)}).") from None
