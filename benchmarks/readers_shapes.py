"""The files that all readers read: shapes of training data, in each format that can hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from pipeprof.bench_data import tabular
from pipeprof.formats import get
from pipeprof.formats.types import format_type


@dataclass(frozen=True)
class Shape:
    name: str
    what: str
    make: Callable[[], pa.Table]
    formats: tuple[str, ...] = ("csv", "parquet", "tfrecord")
    every: int = 1
    """One column in this many is requested."""
    batch: int = 4096
    row_group: int = 2**17
    parquet_copies: int = 4

    def types(self) -> Mapping[str, str]:
        """Return the requested columns, and the types that they are read as."""
        schema = self.make().schema
        names = schema.names[self.every // 2 :: self.every]
        return {name: format_type(schema.field(name).type) for name in names}


def _floats(rows: int, columns: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"f{i:03}": rng.normal(size=rows).astype(np.float32) for i in range(columns)})


def _clicks() -> pa.Table:
    """Return 13 floats and 27 ints. Most ints are small, some take nine bytes, -1 means none."""
    rng, rows = np.random.default_rng(0), 2**16
    ints = {f"i{i:02}": rng.lognormal(6, 5, rows).astype(np.int64) for i in range(27)}
    for values in ints.values():
        values[rng.random(rows) < 0.02] = -1
    return pa.table({**dict(zip(*_columns(_floats(rows, 13)), strict=True)), **ints})


def _gaps() -> pa.Table:
    """Return floats, a random tenth of which is null; they are read as NaN."""
    rng, floats = np.random.default_rng(1), _floats(2**16, 40)
    lacking = [rng.random(floats.num_rows) < 0.1 for _ in floats.columns]
    columns = [
        pa.array(column.to_numpy(), mask=mask)
        for column, mask in zip(floats.columns, lacking, strict=True)
    ]
    return pa.table(columns, names=floats.column_names)


def _columns(table: pa.Table) -> tuple[list[str], list[pa.ChunkedArray]]:
    return table.column_names, table.columns


def _mixed() -> pa.Table:
    """Return columns without nulls, as tf.data cannot parse a feature that is there and empty."""
    table = pa.Table.from_batches([tabular.kind.block(0, block) for block in range(4)])
    columns = [
        column.fill_null(0) if pa.types.is_floating(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _tokens() -> pa.Table:
    rng, rows = np.random.default_rng(0), 2**13
    lengths = rng.integers(64, 1024, rows)
    values = rng.zipf(1.3, int(lengths.sum())).clip(0, 50_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.table(
        {
            "tokens": pa.ListArray.from_arrays(offsets, values),
            "label": rng.integers(0, 2, rows),
        }
    )


def _images() -> pa.Table:
    rng, rows = np.random.default_rng(0), 512
    sizes = rng.integers(60_000, 140_000, rows).tolist()
    return pa.table(
        {"image": [rng.bytes(size) for size in sizes], "label": rng.integers(0, 1000, rows)}
    )


SHAPES = (
    Shape("floats", "40 float32 columns", lambda: _floats(2**16, 40)),
    Shape("clicks", "13 float32 and 27 int64 columns", _clicks),
    Shape("mixed", "26 columns: ids, figures, flags, words", _mixed),
    Shape("gaps", "40 float32 columns, a tenth of them null", _gaps, ("parquet",)),
    Shape("wide", "10 of 200 float32 columns", lambda: _floats(2**15, 200), every=20),
    Shape("tokens", "lists of 64 to 1,024 int64, a label", _tokens, ("parquet", "tfrecord")),
    Shape(
        "images",
        "blobs of about 100 KB, a label",
        _images,
        ("parquet", "tfrecord"),
        batch=64,
        row_group=128,
        parquet_copies=1,
    ),
)


def write(shape: Shape, format_name: str, folder: Path) -> Path:
    """Write CSV and Parquet by Arrow's writers, and TFRecord by ours. Return the path."""
    path = folder / f"{shape.name}.{format_name}"
    table = shape.make()
    if format_name == "csv":
        pyarrow.csv.write_csv(table, path)
    elif format_name == "parquet":
        # reading is so fast that opening a small file would take half of the time
        longer = pa.concat_tables([table] * shape.parquet_copies)
        pyarrow.parquet.write_table(longer, path, row_group_size=shape.row_group)
    else:
        encoder = get(format_name).encoder(table.schema)
        with path.open("wb") as file:
            for batch in table.to_batches(max_chunksize=2**14):
                file.write(encoder.write(batch))
            file.write(encoder.finish())
    return path
