"""Write rows as an Arrow IPC file, in pieces: one record batch per `write`."""

from __future__ import annotations

import pyarrow as pa

from pipeprof.formats.sink import PieceSink
from pipeprof.formats.types import check_batch


class ArrowEncoder:
    """Writes one record batch per `write`, and the footer at the end."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._sink = PieceSink()
        codec = None if compression == "none" else compression
        options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._sink, mode="w"), schema, options=options)

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        if batch.num_rows:
            self._writer.write_batch(batch)
        return self._sink.take()

    def finish(self) -> bytes:
        self._writer.close()
        return self._sink.take()
