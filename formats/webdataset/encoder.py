"""Write rows as a tar archive: a sample a row, a file a value."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator

import pyarrow as pa

from pipeprof.formats.decompress import Deflater
from pipeprof.formats.text_cells import to_text
from pipeprof.formats.types import check_batch
from pipeprof.formats.webdataset.cells import HIDDEN, check_name
from pipeprof.formats.webdataset.members import BLOCK

_NOTHING = f"{HIDDEN}null"
"""The extension of the file of a sample that has no other, as all its values are null."""


class WebDatasetEncoder:
    """Writes the files of a sample one after another. A null is no file."""

    def __init__(self, schema: pa.Schema, compression: str) -> None:
        for name in schema.names:
            check_name(name)
        self._schema = schema
        self._deflater = Deflater(compression)
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> bytes:
        check_batch(batch, self._schema)
        columns = [
            _cells(name, column)
            for name, column in zip(self._schema.names, batch.columns, strict=True)
        ]
        pieces = list[bytes]()
        for row in range(batch.num_rows):
            key = f"{self._rows + row:09d}"
            pieces += self._sample(key, [column[row] for column in columns])
        self._rows += batch.num_rows
        return self._deflater.compress(b"".join(pieces))

    def finish(self) -> bytes:
        return self._deflater.compress(bytes(2 * BLOCK), finish=True)

    def _sample(self, key: str, cells: list[bytes | None]) -> Iterator[bytes]:
        named = zip(self._schema.names, cells, strict=True)
        files = [(name, data) for name, data in named if data is not None]
        for name, data in files or [(_NOTHING, b"")]:
            info = tarfile.TarInfo(f"{key}.{name}")
            info.size = len(data)
            yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
            yield data
            yield bytes(-len(data) % BLOCK)


def _cells(name: str, column: pa.Array) -> list[bytes | None]:
    if not pa.types.is_binary(column.type):
        column = to_text(name, column).cast(pa.large_binary())
    cells: list[bytes | None] = column.to_pylist()
    return cells
