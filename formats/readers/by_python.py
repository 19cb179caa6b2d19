"""Decode by Python's own modules: csv, json and tarfile."""

from __future__ import annotations

import csv
import io
import json
import tarfile

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, plain_bytes
from pipeprof.formats.text_cells import parse_text
from pipeprof.formats.webdataset.cells import Sample, SampleGrouper, to_batch
from pipeprof.formats.webdataset.members import ArchiveFile


class Python:
    """The reader; see the module."""

    name, module = "python", "csv"
    fork_safe = True

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        plain = plain_bytes(data)
        if format_name == "webdataset":
            return pa.Table.from_batches([to_batch(_samples(plain), schema)])
        lines = io.TextIOWrapper(io.BytesIO(plain), "utf-8-sig", newline="")
        if format_name == "jsonl":
            rows = [json.loads(line) for line in lines if not line.isspace()]
            columns = ([row.get(name) for row in rows] for name in schema.names)
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
            ]
            return pa.table(arrays, schema=schema)
        header, *records = csv.reader(lines, strict=True)
        texts = dict(zip(header, zip(*records, strict=True), strict=True)) if records else {}
        cells = {name: pa.array(texts.get(name, ()), pa.string()) for name in schema.names}
        return pa.table(
            [parse_text(field.name, cells[field.name], field.type) for field in schema],
            schema=schema,
        )


def _samples(data: Buffer) -> list[Sample]:
    samples, groups = list[Sample](), SampleGrouper()
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|") as archive:
        for info in archive:
            file = archive.extractfile(info) if info.isfile() else None
            if file is not None:
                samples += groups.add(ArchiveFile(info.name, file.read()))
    return [*samples, *groups.finish()]


READER: Reader = Python()
