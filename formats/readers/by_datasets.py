"""Decode by Hugging Face's datasets: CSV by pandas, the other formats by Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import parent_process
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, file_in_memory, plain_bytes
from pipeprof.formats.text_cells import NULLS

_BATCH_ROWS = 65_536


class Datasets:
    """The reader; see the module. Files are streamed, so that nothing is copied to its cache."""

    name = module = "datasets"
    fork_safe = True

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        if parent_process() is not None:  # a worker
            pa.set_cpu_count(1)
        if format_name == "parquet":
            return _load(format_name, data, schema, columns=list(schema.names))
        if format_name == "arrow":
            return _load(format_name, data, schema)
        data = plain_bytes(data)
        if format_name == "jsonl":
            return _load("json", data, schema)  # it finds the types, also of other columns
        options = {
            "usecols": list(schema.names),
            "na_values": {field.name: [*NULLS] for field in schema if not _is_text(field)},
            "keep_default_na": False,
        }
        try:
            return _load("csv", data, schema, features=_features(schema), **options)
        except ValueError:  # NumPy has no null of integers
            as_text = pa.schema([(name, pa.string()) for name in schema.names])
            return _load("csv", data, schema, features=_features(as_text), **options)


def _load(builder: str, data: Buffer, schema: pa.Schema, **options: Any) -> pa.Table:
    """Return the rows, by the class that `datasets.load_dataset` uses. The function itself would
    report each object to a server of Hugging Face."""
    kind = getattr(import_module(f"datasets.packaged_modules.{builder}.{builder}"), builder.title())
    with file_in_memory(data) as path, TemporaryDirectory("pipeprof") as cache, _silent():
        built = kind(cache_dir=cache, data_files=path, **options)
        rows = built.as_streaming_dataset(split="train")
        tables = list(rows.with_format("arrow").iter(_BATCH_ROWS))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _features(schema: pa.Schema) -> Any:
    import datasets

    return datasets.Features.from_arrow_schema(schema)


@contextmanager
def _silent() -> Iterator[None]:
    """Let datasets log nothing, as its errors are raised, too."""
    from datasets.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_string(field.type))


READER: Reader = Datasets()
