"""How each library reads a file into arrays, by the fastest of its plain calls.

A reader takes a `Job` and yields chunks: column → array, or → (values, offsets) where rows differ
in length. Arrays are contiguous, of the job's types, without nulls (NaN in their place), and in
memory that a tensor can share; ours are tensors. A reader runs in the virtual environment of its
library, so each imports its own library inside, and only ours imports pipeprof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

Column: TypeAlias = "np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]"
Chunk: TypeAlias = "Mapping[str, Any]"
"""Column → array, or a batch of our tensors."""


@dataclass(frozen=True)
class Job:
    """A file, and what to read from it."""

    path: str
    types: Mapping[str, str]
    """Column → ``float32``, ``int64``, ``string``, ``binary``, ``list<int64>``."""
    batch: int
    """Rows per batch."""
    threads: int

    @property
    def columns(self) -> list[str]:
        return list(self.types)


def pipeprof(job: Job) -> Iterator[Chunk]:
    """Read as a user does: in exact batches, with all that counts and times reads."""
    import pipeprof

    yield from pipeprof.open_dataset(
        job.path, columns=job.columns, types=job.types, batch_size=job.batch
    )


def as_arrays(value: Any) -> Column:
    """Return a column as arrays, also where it is a tensor of ours."""
    if hasattr(value, "offsets"):
        return value.values.numpy(), value.offsets.numpy()
    column: Column = value if isinstance(value, (tuple, np.ndarray)) else value.numpy()
    return column


def batches(reader: str, job: Job) -> Iterator[Chunk]:
    """Yield a reader's chunks, cut into batches. No array is copied, and no chunks are joined."""
    for chunk in READERS[reader](job):
        rows = rows_of(chunk)
        if rows <= job.batch:
            yield chunk
            continue
        for at in range(0, rows, job.batch):
            yield {name: _rows(column, at, at + job.batch) for name, column in chunk.items()}


def rows_of(chunk: Chunk) -> int:
    first = next(iter(chunk.values()))
    if isinstance(first, tuple):
        return len(first[1]) - 1
    return first.shape[0] if hasattr(first, "shape") else len(first)  # torch's `len` is slow


def _rows(column: Column, start: int, stop: int) -> Column:
    if not isinstance(column, tuple):
        return column[start:stop]
    values, offsets = column
    first, offsets = offsets[0], offsets[start : stop + 1]
    return values[offsets[0] - first : offsets[-1] - first], offsets


def pyarrow_stream(job: Job) -> Iterator[Chunk]:
    from pyarrow import csv

    types = {name: _arrow_type(kind) for name, kind in job.types.items()}
    convert = csv.ConvertOptions(column_types=types, include_columns=job.columns)
    read = csv.ReadOptions(use_threads=job.threads > 1, block_size=2**20)
    with csv.open_csv(job.path, read_options=read, convert_options=convert) as batches:
        for batch in batches:
            yield _of_arrow(batch)


def pyarrow_groups(job: Job) -> Iterator[Chunk]:
    from pyarrow import parquet

    with parquet.ParquetFile(job.path) as file:
        for group in range(file.num_row_groups):
            yield _of_arrow(
                file.read_row_group(group, columns=job.columns, use_threads=job.threads > 1)
            )


def pyarrow_dataset(job: Job) -> Iterator[Chunk]:
    from pyarrow import dataset

    for batch in dataset.dataset(job.path).to_batches(
        columns=job.columns, batch_size=2**16, use_threads=job.threads > 1
    ):
        yield _of_arrow(batch)


def _arrow_type(kind: str) -> Any:
    import pyarrow as pa

    return pa.string() if kind.startswith("list") else pa.type_for_alias(kind)


def _of_arrow(table: Any) -> Chunk:
    return {
        name: _of_array(column.combine_chunks() if hasattr(column, "chunks") else column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _of_array(array: Any) -> Column:
    """Return the array of a column, which shares Arrow's memory wherever possible."""
    import pyarrow as pa

    if pa.types.is_list(array.type):
        return array.flatten().to_numpy(), array.offsets.to_numpy()
    if pa.types.is_primitive(array.type):
        numbers: np.ndarray[Any, Any] = array.to_numpy(zero_copy_only=False)
        return numbers
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64 if large else np.int32)
    ends = ends[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]], ends


def polars(job: Job) -> Iterator[Chunk]:
    import polars as pl

    if job.path.endswith(".csv"):
        types = {name: _polars_type(kind) for name, kind in job.types.items()}
        frame = pl.read_csv(job.path, columns=job.columns, schema_overrides=types)
    else:
        frame = pl.read_parquet(job.path, columns=job.columns)
    yield {column.name: _of_polars(column) for column in frame}


def _polars_type(kind: str) -> Any:
    import polars as pl

    return {"float32": pl.Float32, "int64": pl.Int64}.get(kind, pl.String)


def _of_polars(column: Any) -> Column:
    import polars as pl

    if column.dtype in (pl.String, pl.Binary):
        return _of_array(column.to_arrow(compat_level=pl.CompatLevel.oldest()))
    if column.dtype == pl.List:
        ends = np.cumsum(column.list.len().to_numpy(), dtype=np.int64)
        return column.explode().to_numpy(), np.concatenate([[0], ends])
    if column.null_count():
        column = column.fill_null(float("nan"))
    numbers: np.ndarray[Any, Any] = column.rechunk().to_numpy()
    return numbers


_MOST_ROWS = 2048


def tfrecord(job: Job) -> Iterator[Chunk]:
    """Read only the first records, as each takes up to 1 ms. No checksum is verified."""
    from tfrecord.reader import tfrecord_loader

    names = {"f": "float", "i": "int", "l": "int", "s": "byte", "b": "byte"}
    kinds = {name: names[kind[0]] for name, kind in job.types.items()}
    rows = islice(tfrecord_loader(job.path, None, kinds), _MOST_ROWS)
    while batch := list(islice(rows, job.batch)):
        yield {
            name: _stacked([row[name] for row in batch], kind) for name, kind in job.types.items()
        }


def _stacked(cells: list[Any], kind: str) -> Column:
    if kind in ("float32", "int64"):
        return np.concatenate(cells)
    offsets = np.concatenate([[0], np.cumsum([len(cell) for cell in cells])])
    if kind.startswith("list"):
        return np.concatenate(cells), offsets
    return np.frombuffer(b"".join(cells), np.uint8), offsets


_MISSING: Mapping[str, Any] = {"f": float("nan"), "i": 0, "s": b"", "b": b""}


def tf_data(job: Job) -> Iterator[Chunk]:
    import tensorflow as tf

    dtypes = {"f": tf.float32, "i": tf.int64, "l": tf.int64, "s": tf.string, "b": tf.string}
    features = {
        name: tf.io.RaggedFeature(dtypes["i"], row_splits_dtype=tf.int64)
        if kind.startswith("list")
        else tf.io.FixedLenFeature([], dtypes[kind[0]], _MISSING[kind[0]])
        for name, kind in job.types.items()
    }
    options = tf.data.Options()
    options.threading.private_threadpool_size = job.threads
    options.threading.max_intra_op_parallelism = job.threads
    records = tf.data.TFRecordDataset(job.path).batch(job.batch).with_options(options)
    for batch in records.map(lambda some: tf.io.parse_example(some, features)):
        yield {name: _of_tf(batch[name], kind) for name, kind in job.types.items()}


def _of_tf(tensor: Any, kind: str) -> Column:
    if kind.startswith("list"):
        return tensor.values.numpy(), tensor.row_splits.numpy()
    if kind in ("float32", "int64"):
        numbers: np.ndarray[Any, Any] = tensor.numpy()
        return numbers
    return _stacked(list(tensor.numpy()), kind)


READERS: Mapping[str, Callable[[Job], Iterator[Chunk]]] = {
    "pipeprof": pipeprof,
    "pyarrow stream": pyarrow_stream,
    "pyarrow row groups": pyarrow_groups,
    "pyarrow dataset": pyarrow_dataset,
    "polars": polars,
    "tfrecord": tfrecord,
    "tf.data": tf_data,
}
