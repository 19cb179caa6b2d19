"""Write rows as Parquet, in pieces: one row group per batch, so that memory holds only one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from pipeprof.formats.sink import PieceSink
from pipeprof.formats.types import check_batch


class ParquetEncoder:
    """Writes one row group per `write`, in pages with checksums."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._sink = PieceSink()
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=compression,
            write_page_checksum=True,
        )

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        if batch.num_rows:
            self._writer.write_batch(batch, row_group_size=batch.num_rows)
        return self._sink.take()

    def finish(self) -> bytes:
        self._writer.close()
        return self._sink.take()
