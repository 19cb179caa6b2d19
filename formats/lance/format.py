"""Lance: files of pages, of which a column has as many as it needs.

The end of a file says where each page lies, so only pages of asked columns are read. A split is a
run of rows. The pages that hold them are decoded by pylance, from a file in memory with holes where
nothing was fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import (
    ByteRange,
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
    fetch,
    fetch_ranges,
)
from pipeprof.formats.lance.decoding import read_rows, sparse_copy
from pipeprof.formats.lance.encoder import LanceEncoder
from pipeprof.formats.lance.layout import FOOTER_BYTES, MAGIC, Layout, parse_footer, parse_layout
from pipeprof.formats.sparse_file import coalesced
from pipeprof.formats.types import choose_columns, convert_batch

_TAIL_BYTES = 2**16
_MOST_ROWS = 65_536
"""Most rows that are decoded at a time."""


class Lance:
    """The format; see the module."""

    name = "lance"
    suffixes: tuple[str, ...] = (".lance",)
    compressions: tuple[str, ...] = ("none", "zstd", "lz4")
    row_groups = False
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = "lance"

    def sniff(self, head: bytes, tail: bytes) -> bool:
        return len(tail) >= FOOTER_BYTES and tail.endswith(MAGIC)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits. The columns have the declared types; ``types`` converts to others."""
        length = min(size, _TAIL_BYTES)
        tail = bytes((yield from fetch(size - length, length)))
        footer = parse_footer(tail, size)
        if footer.begin < size - length:
            tail = bytes((yield from fetch(footer.begin, size - footer.begin)))
        schema_range = footer.schema_range(tail, size)
        schema_data = bytes((yield from fetch(*schema_range)))
        layout = parse_layout(footer, schema_data, tail, size)
        schema, left_out = choose_columns(layout.schema, columns, types)
        if not layout.rows:
            return FilePlan(schema, (), left_out)
        described = coalesced(
            [schema_range, (footer.begin, size - footer.begin)], options.gap_bytes
        )
        splits = _splits(layout, schema.names, tuple(described), options)
        return FilePlan(schema, tuple(splits), left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        buffers = yield from fetch_ranges(split.ranges)
        rows = split.end - split.start
        nbytes = sum(length for _, length in split.ranges)
        at_once = min(_MOST_ROWS, max(1, rows * options.block_bytes // max(1, nbytes)))
        with sparse_copy(size, split.ranges, buffers) as path:
            decoded = 0
            for batch in read_rows(path, schema.names, split.start, rows, at_once):
                decoded += batch.num_rows
                yield convert_batch(batch, schema)
        if decoded != rows:
            raise CorruptData(f"{decoded} of {rows} rows came; the file is damaged.")

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return LanceEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _splits(
    layout: Layout,
    names: Sequence[str],
    described: tuple[ByteRange, ...],
    options: ReadOptions,
) -> Iterator[Split]:
    """Yield runs of rows whose pages have about ``split_bytes``. They begin where a page of some
    column does, so that few pages are read twice."""
    columns = layout.pages(names)
    bounds = sorted({0, layout.rows}.union(*(each.firsts for each in columns)))
    first = 0
    for end, after in zip(bounds[1:], [*bounds[2:], None], strict=True):
        if after is not None:
            longer = sum(each.nbytes(first, after) for each in columns)
            if not options.split_bytes or longer <= options.split_bytes:
                continue
        ranges = [each for column in columns for each in column.ranges(first, end)]
        yield Split(first, end, end - first, (*described, *coalesced(ranges, options.gap_bytes)))
        first = end


FORMAT: Format = Lance()
