"""Write rows as a Lance file, by pylance. The library writes to a path, so the file is built in
memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

import pyarrow as pa

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.lance.decoding import errors_as, library, memory_folder
from pipeprof.formats.types import check_batch, is_list

_COMPRESSION = "lance-encoding:compression"
"""The metadata of a field that says how its pages are compressed, on top of Lance's encodings."""


class LanceEncoder:
    """Writes all rows at the end."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        folder = tempfile.mkdtemp(prefix="pipeprof-lance-", dir=memory_folder())
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = Path(folder, "rows.lance")
        metadata = {_COMPRESSION: compression}
        self._written = pa.schema(
            [pa.field(field.name, _stored_type(field.type), metadata=metadata) for field in schema]
        )
        self._writer = library().LanceFileWriter(str(self._path), self._written)

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        if batch.num_rows:
            columns = [
                column.cast(field.type)
                for column, field in zip(batch.columns, self._written, strict=True)
            ]
            with errors_as(SchemaMismatch, "write"):
                self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._written))
        return b""

    def finish(self) -> bytes:
        with errors_as(SchemaMismatch, "write"):
            self._writer.close()
        data = self._path.read_bytes()
        self._remove()
        return data


def _stored_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type as which a column is stored. Lance has no fixed lists of text."""
    if is_list(dtype) and dtype.value_type in (pa.string(), pa.binary()):
        return pa.list_(dtype.value_type)
    return dtype
