"""JSON Lines: UTF-8, an object a line, plain, gzip or zstd.

A plain file is cut into byte ranges; a line belongs to the range in which it begins. Text holds no
line end, as JSON escapes it, so a file may be cut anywhere. A compressed stream is one split. A
column that a line lacks is null there. One that the first 1 MiB lacks is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import (
    Buffer,
    Decoding,
    Encoder,
    Fault,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
)
from pipeprof.formats.decompress import plain_head, recognise
from pipeprof.formats.jsonl.columns import Row, infer_schema, parse_row
from pipeprof.formats.jsonl.encoder import JsonlEncoder
from pipeprof.formats.jsonl.parser import LineParser
from pipeprof.formats.lines import BOM, LineBuffer, Window
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import choose_columns

_SAMPLE_BYTES = 2**20


class Jsonl:
    """The format; see the module."""

    name = "jsonl"
    suffixes: tuple[str, ...] = (
        ".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst", ".json",
        ".json.gz", ".json.zst",
    )  # fmt: skip
    compressions: tuple[str, ...] = ("none", "gzip", "zstd")
    row_groups = False
    optional_columns = True
    cut_anywhere = True
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        plain = plain_head(head)
        line = plain.removeprefix(BOM).lstrip().partition(b"\n")[0]
        try:
            return bool(parse_row(line, 1))
        except CorruptData:
            return False

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the splits. Types are inferred from the lines in the first 1 MiB, or from one longer
        line."""
        stream, buffer, lines = Stream(size, _SAMPLE_BYTES, recognise), LineBuffer(), b""
        while not lines.strip() and (block := (yield from stream.read())):
            lines = buffer.push(block)
        lines = (lines if lines.strip() else buffer.finish()).removeprefix(BOM)
        rows, error = _rows(lines)
        if error is not None:
            if not rows:
                raise error
            yield Fault(error, 0)
        if not any(rows):
            return FilePlan(None, ())
        schema, left_out = choose_columns(infer_schema(rows, columns, types), columns, types)
        step = options.split_bytes
        if stream.codec or not 0 < step < size:
            return FilePlan(schema, (Split(0, size),), left_out)
        ends = [*range(step, size, step), size]
        starts = [0, *ends[:-1]]
        splits = tuple(Split(start, end) for start, end in zip(starts, ends, strict=True))
        return FilePlan(schema, splits, left_out)

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        source: Stream | Window
        if (split.start, split.end) == (0, size):
            source = Stream(size, options.block_bytes, recognise)
        else:
            source = Window(split.start, split.end, size, options.block_bytes)
        parser, buffer, first = LineParser(schema, split.start), LineBuffer(), split.start == 0
        block: Buffer = b"\n"
        while len(block):
            block = yield from source.read()
            lines = buffer.push(block) if len(block) else buffer.finish()
            if lines and first:
                lines, first = lines.removeprefix(BOM), False
            if lines:
                yield from parser.parse(lines)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        return JsonlEncoder(schema, choose_compression(self.name, self.compressions, compression))


def _rows(lines: bytes) -> tuple[list[Row], CorruptData | None]:
    """Return the objects in ``lines``, and the first fault of others."""
    rows, first_error = list[Row](), None
    for number, line in enumerate(lines.split(b"\n"), 1):
        if line and not line.isspace():
            try:
                rows.append(parse_row(line, number))
            except CorruptData as error:
                first_error = first_error or error
    return rows, first_error


FORMAT: Format = Jsonl()
