"""Decode tar archives by the package webdataset."""

from __future__ import annotations

import io

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.decompress import recognise
from pipeprof.formats.readers.base import Reader, plain_bytes
from pipeprof.formats.webdataset.cells import to_batch


class WebDatasetPackage:
    """The reader; see the module. Extensions keep their case, which the package would lower."""

    name = module = "webdataset"
    fork_safe = True

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        from webdataset.tariterators import group_by_keys, tar_file_expander

        if recognise(bytes(data[:4])) == "zstd":  # which its tarfile cannot read
            data = plain_bytes(data)
        files = tar_file_expander([{"url": "", "stream": io.BytesIO(data)}])
        samples = list(group_by_keys(files, lcase=False))
        return pa.Table.from_batches([to_batch(samples, schema)])


READER: Reader = WebDatasetPackage()
