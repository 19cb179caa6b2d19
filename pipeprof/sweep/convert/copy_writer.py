"""Rows → the files of a copy, in row groups of one size."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import Any

import pyarrow as pa

from pipeprof import formats
from pipeprof.bench_data.generate import FEWEST_SHARDS, SHARD_BYTES, suffix_of
from pipeprof.bench_data.shards import BATCH_BYTES, ROW_GROUP_BYTES
from pipeprof.errors import FormatError
from pipeprof.formats.base import Encoder
from pipeprof.log import suppress_and_log
from pipeprof.manifest import ManifestFile
from pipeprof.model import Copy
from pipeprof.storage.urls import join
from pipeprof.storage.write import Sink, open_object

_log = logging.getLogger(__name__)

_WORKERS_SHARE = 2
"""Files for each worker, at least: they are dealt out whole."""


class UnwritableRows(Exception):
    """The format cannot hold these rows."""


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise UnwritableRows(str(error)) from None


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
        self._least = copy.shard_bytes
        chunk = ROW_GROUP_BYTES if copy.format == "parquet" else BATCH_BYTES
        at_most = min(chunk, copy.shard_bytes or self._file_bytes)
        self._chunk_bytes = copy.row_group_bytes or at_most
        self._copy, self._url, self._schema, self._options = copy, url, schema, options
        self._expected_bytes = expected_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._chunk_rows = self._waiting_rows = 0
        self._opened: AbstractContextManager[Sink] | None = None
        self._files: list[ManifestFile] = []
        self.seconds = 0.0
        """Spent on encoding and writing."""
        with _refusing():
            self._encoder = self._new_encoder()

    def add(self, rows: pa.RecordBatch) -> None:
        began = perf_counter()
        if not self._chunk_rows:
            self._chunk_rows = max(1, rows.num_rows * self._chunk_bytes // max(1, rows.nbytes))
        while self._waiting_rows + rows.num_rows >= self._chunk_rows:
            taken = self._chunk_rows - self._waiting_rows
            self._encode([*self._waiting, rows[:taken]])
            self._waiting, self._waiting_rows, rows = [], 0, rows[taken:]
        if rows.num_rows:
            self._waiting.append(rows)
            self._waiting_rows += rows.num_rows
        self.seconds += perf_counter() - began

    def finish(self) -> tuple[ManifestFile, ...]:
        began = perf_counter()
        if self._waiting:
            self._encode(self._waiting)
        if self._opened is not None:
            self._close()
        self.seconds += perf_counter() - began
        return tuple(self._files)

    def abandon(self, error: BaseException) -> None:
        """Of the file that is being written nothing stays."""
        if self._opened is not None:
            with suppress_and_log(_log, "a half-written file of a copy was not given up"):
                self._opened.__exit__(type(error), error, error.__traceback__)

    def _encode(self, parts: list[pa.RecordBatch]) -> None:
        [batch] = pa.Table.from_batches(parts).combine_chunks().to_batches()
        if self._opened is None:
            self._open()
        with _refusing():
            data = self._encoder.write(batch)
        self._sink.write(data)
        self._rows += batch.num_rows
        self._ram_bytes += batch.nbytes
        if self._is_full():
            self._close()
            self._encoder = self._new_encoder()

    def _is_full(self) -> bool:
        """Whether the file is as large as asked for, or else as near to it as chunks allow."""
        if self._least:
            return self._sink.size >= self._least
        return self._ram_bytes + self._chunk_bytes / 2 >= self._file_bytes

    def _new_encoder(self) -> Encoder:
        return formats.get(self._copy.format).encoder(self._schema, self._copy.compression)

    def _open(self) -> None:
        suffix = suffix_of(self._copy.format, self._copy.compression)
        self._name = f"part-{len(self._files):05d}{suffix}"
        left = self._expected_bytes - sum(file.bytes for file in self._files)
        self._opened = open_object(join(self._url, self._name), self._options, max(left, 1))
        self._sink = self._opened.__enter__()
        self._rows = self._ram_bytes = 0

    def _close(self) -> None:
        self._sink.write(self._encoder.finish())
        assert self._opened is not None
        opened, self._opened = self._opened, None
        opened.__exit__(None, None, None)
        self._files.append(ManifestFile(self._name, self._sink.size, self._rows))
