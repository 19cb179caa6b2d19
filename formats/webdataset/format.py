"""WebDataset: a tar archive, plain, gzip or zstd, of samples.

The files of a sample lie side by side. ``000017.jpg`` and ``000017.cls`` are a row with the columns
``jpg`` and ``cls``. What is text and reads as a number, a truth value or a list has that type. All
else is text, or bytes. An archive is one split, unless an index says where its samples lie (see
`index`). One that lies in many small files is read like one of few large ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import (
    Buffer,
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    choose_compression,
    fetch_ranges,
)
from pipeprof.formats.bisect_errors import decode_undamaged
from pipeprof.formats.decompress import plain_head, recognise
from pipeprof.formats.stream import Stream
from pipeprof.formats.types import check_types, select
from pipeprof.formats.webdataset.cells import (
    Sample,
    SampleGrouper,
    infer_schema,
    names_of,
    to_batch,
)
from pipeprof.formats.webdataset.encoder import WebDatasetEncoder
from pipeprof.formats.webdataset.members import BLOCK, Members

_SAMPLE_BYTES = 2**20
_MAGIC = b"ustar"
_MAGIC_OFFSET = 257


class WebDataset:
    """The format; see the module."""

    name = "webdataset"
    suffixes: tuple[str, ...] = (".tar", ".tar.gz", ".tgz", ".tar.zst")
    compressions: tuple[str, ...] = ("none", "gzip", "zstd")
    row_groups = False
    optional_columns = True
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        plain = plain_head(head)
        return plain[_MAGIC_OFFSET:].startswith(_MAGIC) or _is_empty_archive(plain)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the split. The samples in the first 1 MiB, or one longer sample, say which columns
        there are, and of which types."""
        samples = list[Sample]()
        reader = _SampleReader(Stream(size, _SAMPLE_BYTES, recognise))
        while not samples and reader.more:
            block = yield from reader.stream.read()
            samples += reader.samples(block)
        if not samples:
            return FilePlan(None, ())
        names = names_of(samples)
        names += [name for name in columns or () if name in types and name not in names]
        check_types(types, names)
        schema = infer_schema(samples, select(names, columns), types)
        return FilePlan(schema, (Split(0, size),))

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        if split.ranges:
            [data] = yield from fetch_ranges(split.ranges)
            samples = _samples_of_part(data, split)
            yield from decode_undamaged(samples, lambda some: to_batch(some, schema), _halves, len)
            return
        reader = _SampleReader(Stream(size, options.block_bytes, recognise))
        while reader.more:
            block = yield from reader.stream.read()
            samples = reader.samples(block)
            if samples:
                yield from decode_undamaged(
                    samples, lambda some: to_batch(some, schema), _halves, len
                )

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        chosen = choose_compression(self.name, self.compressions, compression)
        return WebDatasetEncoder(schema, chosen)


class _SampleReader:
    """Turns the blocks of a stream into samples."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.more = True
        """Whether the stream has not ended."""
        self._members, self._groups = Members(), SampleGrouper()

    def samples(self, block: Buffer) -> list[Sample]:
        """Return the samples that ``block`` completes; the last ones for no bytes. Raises
        `CorruptData`."""
        self.more = len(block) > 0
        found = [
            sample for member in self._members.push(block) for sample in self._groups.add(member)
        ]
        if not self.more:
            self._members.finish()
            found += self._groups.finish()
        return found


def _samples_of_part(data: Buffer, split: Split) -> list[Sample]:
    """Return the samples of a split by an index. Raises `CorruptData`."""
    members, groups = Members(split.start), SampleGrouper()
    found = [sample for member in members.push(data) for sample in groups.add(member)]
    members.finish_part()
    found += groups.finish()
    if len(found) != split.rows:
        raise CorruptData(
            f"it has {len(found)} samples from byte {split.start} on where its index says "
            f"{split.rows}; write the index again, or remove it."
        )
    return found


def _halves(samples: list[Sample]) -> tuple[list[Sample], list[Sample]] | None:
    middle = len(samples) // 2
    return (samples[:middle], samples[middle:]) if middle else None


def _is_empty_archive(head: bytes) -> bool:
    return len(head) >= 2 * BLOCK and not head.strip(b"\0")


FORMAT: Format = WebDataset()
