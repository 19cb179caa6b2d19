"""Decode by polars, with one thread in each worker."""

from __future__ import annotations

import os
from multiprocessing import parent_process
from typing import Any

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, plain_bytes
from pipeprof.formats.text_cells import NULLS

_NARROW = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())
"""Types that polars cannot read from JSON."""


class Polars:
    """The reader; see the module. In columns of text, CSV's words for null are read as empty."""

    name = module = "polars"
    fork_safe = False

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        if parent_process() is not None:  # a worker; the main process may use polars, too
            os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported
        import polars as pl

        try:
            return _read(format_name, bytes(data), schema)
        except pl.exceptions.PanicException as error:  # no Exception
            raise ValueError(str(error)) from None


def _read(format_name: str, data: bytes, schema: pa.Schema) -> pa.Table:
    import polars as pl

    names: list[str] = list(schema.names)
    if format_name == "csv":
        frame = pl.read_csv(
            data, columns=names, schema_overrides=_types(schema), null_values=[*NULLS]
        )
    elif format_name == "jsonl":
        wide = [pa.int64() if field.type in _NARROW else field.type for field in schema]
        types = _types(pa.schema(zip(names, wide, strict=True)))
        frame = pl.read_ndjson(bytes(plain_bytes(data)), schema_overrides=types).select(names)
    elif format_name == "parquet":
        frame = pl.read_parquet(data, columns=names)
    elif data.startswith(b"ARROW1"):
        frame = pl.read_ipc(data, columns=names)
    else:
        frame = pl.read_ipc_stream(data, columns=names)
    return frame.to_arrow()


def _types(schema: pa.Schema) -> Any:
    """Return the types as polars has them."""
    import polars as pl

    return pl.DataFrame(pl.from_arrow(schema.empty_table())).schema


READER: Reader = Polars()
