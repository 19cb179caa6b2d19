"""Write rows as CSV, in pieces; the first piece begins with the header line."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.errors import SchemaMismatch
from pipeprof.formats.decompress import Deflater
from pipeprof.formats.text_cells import joined, to_text
from pipeprof.formats.types import check_batch


class CsvEncoder:
    """Writes CSV by RFC 4180, with quotes only where they are needed."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        self._schema = schema
        self._deflater = Deflater(compression)
        names = _quoted(pa.array(schema.names, pa.large_string()))
        self._pending = ",".join(names.to_pylist()).encode() + b"\n"

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        data, self._pending = self._pending + _lines(batch), b""
        if b"\0" in data:
            raise SchemaMismatch(
                "a text holds a NUL character, which CSV cannot hold; make its column binary."
            )
        return self._deflater.compress(data)

    def finish(self) -> bytes:
        return self._deflater.compress(self._pending, finish=True)


def _lines(batch: pa.RecordBatch) -> bytes:
    """Return a column of text, a row each with its line end: its bytes are those of the file."""
    if not batch.num_rows:
        return b""
    fields = [
        _quoted(to_text(field.name, column))
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    comma, line_end, nothing = (pa.scalar(text, pa.large_string()) for text in (",", "\n", ""))
    rows = pc.binary_join_element_wise(*fields, comma)
    _, offsets, text = pc.binary_join_element_wise(rows, line_end, nothing).buffers()
    end = int(np.frombuffer(offsets, np.int64)[batch.num_rows])
    return bytes(memoryview(text)[:end])


def _quoted(text: pa.Array) -> pa.Array:
    """Return the fields, quoted where they need it; a null becomes an empty field."""
    text = text.fill_null("")
    needs = pc.match_substring_regex(text, '[",\r\n]')
    if not pc.any(needs, min_count=0).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, joined(doubled, before='"', after='"'), text)
