"""Write one copy of the sample: claim its folder, and fill it with files of row groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter
from typing import Any

import pyarrow as pa

from pipeprof import formats, manifest
from pipeprof.bench_data.generate import FEWEST_SHARDS, JOURNAL, SHARD_BYTES, suffix_of
from pipeprof.bench_data.rows import rebatch
from pipeprof.bench_data.shards import BATCH_BYTES, ROW_GROUP_BYTES
from pipeprof.errors import FormatError
from pipeprof.formats.base import Encoder
from pipeprof.formats.types import format_type
from pipeprof.manifest import MANIFEST, Manifest, ManifestFile
from pipeprof.model import Copy
from pipeprof.storage.urls import join
from pipeprof.storage.write import object_sizes, open_object, remove_object
from pipeprof.sweep.convert.copies import remove_copy, remove_folder

_FILES_PER_WORKER = 2
"""The least number of files per worker, because each worker reads whole files."""


@dataclass
class CopyWriter:
    """Writes one copy, and keeps the rows of one row group in memory."""

    copy: Copy
    url: str
    """The URL of the copy, with credentials."""
    schema: pa.Schema
    expected_bytes: int
    """The expected bytes of all rows in RAM."""
    most_workers: int = 0
    """The most workers of the trials that will read the copy."""
    options: Mapping[str, Any] | None = None
    """The storage options of fsspec."""

    def __post_init__(self) -> None:
        copy, files = self.copy, max(FEWEST_SHARDS, _FILES_PER_WORKER * self.most_workers)
        usual = max(1, min(SHARD_BYTES, self.expected_bytes // files))
        self._file_bytes = max(usual, copy.row_group_bytes or 0)
        """The bytes of one file's rows in RAM."""
        default = ROW_GROUP_BYTES if formats.get(copy.format).row_groups else BATCH_BYTES
        at_most = min(default, copy.shard_bytes or self._file_bytes)
        self._chunk_bytes = copy.row_group_bytes or at_most
        """The bytes of the rows that are encoded at once, in RAM."""
        self._reading_s = 0.0

    def claim(self) -> None:
        """Empty the folder, and write a journal that marks it as a copy to be removed.

        This finds a storage that cannot be written to before the data is read. Raises
        `OutputError`, and leaves nothing behind then.
        """
        try:
            for name in object_sizes(self.url, self.options):  # left by a sweep that was killed
                remove_object(join(self.url, name), self.options)
            self._write_manifest(JOURNAL)
        except BaseException:
            for folder in (self.url, self.url.rpartition("/")[0]):
                remove_folder(folder, self.options)
            raise

    def write(self, rows: Iterable[pa.RecordBatch]) -> Copy:
        """Write all ``rows``, and return the copy with its size and the time that writing took.

        Where the format cannot hold the rows, nothing is left of the copy, and `Copy.skipped` says
        why. Raises `OutputError`, and whatever reading the rows raises.
        """
        began = perf_counter()
        try:
            files = tuple(self._write_files(rows))
        except _UnwritableRows as error:
            remove_copy(self.url, self.options)
            return replace(self.copy, skipped=str(error))
        write_s = perf_counter() - began - self._reading_s
        written = self._write_manifest(MANIFEST, files)
        remove_object(join(self.url, JOURNAL), self.options)
        return replace(
            self.copy, rows=written.rows, objects=len(files), bytes=written.bytes, write_s=write_s
        )

    def _write_files(self, rows: Iterable[pa.RecordBatch]) -> Iterator[ManifestFile]:
        encoder, chunks = self._new_encoder(), self._chunks(self._timed(rows))
        remaining = self.expected_bytes
        for number, first in enumerate(chunks):
            suffix = suffix_of(self.copy.format, self.copy.compression)
            file = self._write_file(
                f"part-{number:05d}{suffix}", encoder, chain([first], chunks), max(remaining, 1)
            )
            yield file
            remaining -= file.bytes
            encoder = self._new_encoder()

    def _write_file(
        self, name: str, encoder: Encoder, chunks: Iterator[pa.RecordBatch], needs: int
    ) -> ManifestFile:
        rows = ram_bytes = 0
        with open_object(join(self.url, name), self.options, needs) as sink:
            for chunk in chunks:
                with _unwritable_rows():
                    data = encoder.write(chunk)
                sink.write(data)
                rows += chunk.num_rows
                ram_bytes += chunk.nbytes
                if self._is_full(sink.size, ram_bytes):
                    break
            sink.write(encoder.finish())
        return ManifestFile(name, sink.size, rows)

    def _is_full(self, stored_bytes: int, ram_bytes: int) -> bool:
        """Return whether a file has reached its size, as nearly as whole chunks allow."""
        if self.copy.shard_bytes:
            return stored_bytes >= self.copy.shard_bytes
        return ram_bytes + self._chunk_bytes / 2 >= self._file_bytes

    def _chunks(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Regroup the rows into batches of about `_chunk_bytes`."""
        for first in rows:
            size = max(1, first.num_rows * self._chunk_bytes // max(1, first.nbytes))
            yield from rebatch(chain([first], rows), size)

    def _timed(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows, and add the time that reading them takes to `_reading_s`."""
        began = perf_counter()
        for batch in rows:
            self._reading_s += perf_counter() - began
            yield batch
            began = perf_counter()
        self._reading_s += perf_counter() - began

    def _new_encoder(self) -> Encoder:
        with _unwritable_rows():
            return formats.get(self.copy.format).encoder(self.schema, self.copy.compression)

    def _write_manifest(self, name: str, files: tuple[ManifestFile, ...] = ()) -> Manifest:
        """Write the manifest of a copy that consists of ``files``, under ``name``."""
        written = Manifest(
            kind="sample",
            format=self.copy.format,
            compression=self.copy.compression,
            seed=0,
            generator=0,
            size_bytes=self.expected_bytes,
            rows=sum(file.rows for file in files),
            shards=len(files),
            columns={column.name: format_type(column.type) for column in self.schema},
            files=files,
        )
        with open_object(join(self.url, name), self.options) as sink:
            sink.write(manifest.dumps(written))
        return written


class _UnwritableRows(Exception):
    """The format cannot hold these rows."""


@contextmanager
def _unwritable_rows() -> Iterator[None]:
    """Raise a `FormatError` of the body as `_UnwritableRows`."""
    try:
        yield
    except FormatError as error:
        raise _UnwritableRows(str(error)) from None
