"""Rows → the files of a copy, in row groups of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from time import perf_counter
from typing import Any

import pyarrow as pa

from pipeprof import formats
from pipeprof.bench_data.generate import FEWEST_SHARDS, SHARD_BYTES, suffix_of
from pipeprof.bench_data.rows import regrouped
from pipeprof.bench_data.shards import BATCH_BYTES, ROW_GROUP_BYTES
from pipeprof.errors import FormatError
from pipeprof.formats.base import Encoder
from pipeprof.manifest import ManifestFile
from pipeprof.model import Copy
from pipeprof.storage.urls import join
from pipeprof.storage.write import open_object

_WORKERS_SHARE = 2
"""Files for each worker, at least: they are dealt out whole."""


class UnwritableRows(Exception):
    """The format cannot hold these rows."""


class CopyWriter:
    """Rows → files of row groups; holds the rows of one row group."""

    def __init__(
        self,
        copy: Copy,
        url: str,
        schema: pa.Schema,
        expected_bytes: int,
        most_workers: int,
        options: Mapping[str, Any] | None,
    ) -> None:
        files = max(FEWEST_SHARDS, _WORKERS_SHARE * most_workers)
        usual = max(1, min(SHARD_BYTES, expected_bytes // files))
        self._file_bytes = max(usual, copy.row_group_bytes or 0)
        """As rows lie in RAM."""
        chunk = ROW_GROUP_BYTES if copy.format == "parquet" else BATCH_BYTES
        at_most = min(chunk, copy.shard_bytes or self._file_bytes)
        self._chunk_bytes = copy.row_group_bytes or at_most
        self._copy, self._url, self._schema, self._options = copy, url, schema, options
        self._expected_bytes = expected_bytes
        self._reading_s = 0.0
        self.seconds = 0.0
        """Spent on encoding and writing."""

    def write(self, rows: Iterable[pa.RecordBatch]) -> tuple[ManifestFile, ...]:
        """Write all ``rows``. Raises `UnwritableRows`, `OutputError`, and what reading them raises;
        of the file that is being written nothing stays then."""
        began, encoder = perf_counter(), self._new_encoder()
        files: list[ManifestFile] = []
        chunks = self._chunks(self._timed(rows))
        for first in chunks:
            files.append(self._write_file(files, encoder, chain([first], chunks)))
            encoder = self._new_encoder()
        self.seconds = perf_counter() - began - self._reading_s
        return tuple(files)

    def _write_file(
        self, before: list[ManifestFile], encoder: Encoder, chunks: Iterator[pa.RecordBatch]
    ) -> ManifestFile:
        name = f"part-{len(before):05d}{suffix_of(self._copy.format, self._copy.compression)}"
        left = self._expected_bytes - sum(file.bytes for file in before)
        rows = ram_bytes = 0
        with open_object(join(self._url, name), self._options, max(left, 1)) as sink:
            for chunk in chunks:
                with _refusing():
                    data = encoder.write(chunk)
                sink.write(data)
                rows += chunk.num_rows
                ram_bytes += chunk.nbytes
                if self._is_full(sink.size, ram_bytes):
                    break
            sink.write(encoder.finish())
        return ManifestFile(name, sink.size, rows)

    def _is_full(self, stored_bytes: int, ram_bytes: int) -> bool:
        """Whether the file is as large as asked for, or else as near to it as chunks allow."""
        if self._copy.shard_bytes:
            return stored_bytes >= self._copy.shard_bytes
        return ram_bytes + self._chunk_bytes / 2 >= self._file_bytes

    def _chunks(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for first in rows:
            size = max(1, first.num_rows * self._chunk_bytes // max(1, first.nbytes))
            yield from regrouped(chain([first], rows), size)

    def _timed(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        began = perf_counter()
        for batch in rows:
            self._reading_s += perf_counter() - began
            yield batch
            began = perf_counter()
        self._reading_s += perf_counter() - began

    def _new_encoder(self) -> Encoder:
        with _refusing():
            return formats.get(self._copy.format).encoder(self._schema, self._copy.compression)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise UnwritableRows(str(error)) from None
