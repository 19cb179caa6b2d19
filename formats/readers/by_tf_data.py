"""Decode by TensorFlow: records by tf.data, in batches that `tf.io.parse_example` parses."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import Reader, file_in_memory
from pipeprof.formats.tfrecord import example
from pipeprof.formats.tfrecord.format import recognise
from pipeprof.formats.types import is_list

_BATCH_ROWS = 4096
_COMPRESSION: Mapping[str | None, str] = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}


class TFData:
    """The reader; see the module. Where a record lacks a scalar, all columns of its object are
    parsed as lists, which takes longer."""

    name, module = "tf.data", "tensorflow"
    fork_safe = False

    def read(self, format_name: str, data: Buffer, schema: pa.Schema) -> pa.Table:
        tf = _tensorflow()
        options = tf.data.Options()
        if parent_process() is not None:
            options.threading.private_threadpool_size = 1
            options.threading.max_intra_op_parallelism = 1
        compression = _COMPRESSION[recognise(bytes(data[:64]))]
        with file_in_memory(data) as path:
            records = tf.data.TFRecordDataset(path, compression).batch(_BATCH_ROWS)
            records = records.with_options(options)
            try:
                return _table(records, schema, _scalars_alone)
            except tf.errors.InvalidArgumentError:  # a record lacks a scalar
                return _table(records, schema, _as_lists)


@cache
def _tensorflow() -> Any:
    """Return TensorFlow, without a GPU, of which it would take all memory."""
    if parent_process() is not None:  # read when TensorFlow is imported
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
        os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    is_ours = "tensorflow" not in sys.modules
    import tensorflow as tf

    if is_ours:
        with suppress(RuntimeError):
            tf.config.set_visible_devices([], "GPU")
    return tf


Features = Callable[[Any, pa.Field], Any]
"""Returns the feature as which TensorFlow parses a column."""


def _scalars_alone(tf: Any, field: pa.Field) -> Any:
    if is_list(field.type):
        return _as_lists(tf, field)
    return tf.io.FixedLenFeature([], _dtype(tf, field))


def _as_lists(tf: Any, field: pa.Field) -> Any:
    return tf.io.RaggedFeature(_dtype(tf, field), row_splits_dtype=tf.int64)


def _dtype(tf: Any, field: pa.Field) -> Any:
    dtypes = {"int64_list": tf.int64, "float_list": tf.float32, "bytes_list": tf.string}
    return dtypes[example.kind_of(field)]


def _table(records: Any, schema: pa.Schema, feature: Features) -> pa.Table:
    tf = _tensorflow()
    features = {field.name: feature(tf, field) for field in schema}
    batches = []
    for some in records:
        parsed = tf.io.parse_example(some, features)
        columns = [_column(parsed[field.name], field) for field in schema]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _column(parsed: Any, field: pa.Field) -> pa.Array:
    if hasattr(parsed, "row_splits"):
        values, counts = parsed.values.numpy(), np.diff(parsed.row_splits.numpy())
    else:
        values = parsed.numpy()
        counts = np.ones(len(values), np.int64)
    is_bytes = values.dtype == object
    return example.shape(pa.array(values, pa.binary() if is_bytes else None), counts, field, 0)


READER: Reader = TFData()
