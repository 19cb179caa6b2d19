"""Rows of many columns, as a feature store keeps them: a training reads few of them.

An id, a moment, 180 measured figures, 12 counts, 6 categories as text, and a label: 201 columns.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.bench_data.rows import random_of

_MEASURED, _COUNTS, _CATEGORIES = 180, 12, 6
_LEVELS = 500
"""Different values of a category."""


class Wide:
    name = "wide"
    schema = pa.schema(
        [("row_id", pa.int64()), ("moment_s", pa.int64())]
        + [(f"x{i}", pa.float32()) for i in range(_MEASURED)]
        + [(f"count{i}", pa.int64()) for i in range(_COUNTS)]
        + [(f"category{i}", pa.string()) for i in range(_CATEGORIES)]
        + [("label", pa.int64())]
    )
    mean_row_bytes = 915
    block_rows = 4096

    def block(self, seed: int, index: int) -> pa.RecordBatch:
        random = random_of(self.name, seed, index)
        rows = self.block_rows
        row = np.arange(index * rows, (index + 1) * rows)
        # of two decimals, as sensors and prices have: text of them is not longer than they are
        measured = np.round(random.normal(0.0, 30.0, (_MEASURED, rows)), 2).astype(np.float32)
        columns = [
            pa.array(row),
            pa.array(1_700_000_000 + row // 10),
            *map(pa.array, measured),
            *map(pa.array, random.geometric(0.05, (_COUNTS, rows))),
            *(_category(values) for values in random.integers(_LEVELS, size=(_CATEGORIES, rows))),
            pa.array((measured[0] + measured[1] > 0).astype(np.int64)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _category(levels: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("level", pc.cast(pa.array(levels), pa.string()), "-")


kind = Wide()
