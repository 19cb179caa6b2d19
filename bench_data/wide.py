"""Draw rows of many columns, as in a feature store, of which a training reads only a few.

The 201 columns are an id, a time, 180 measurements, 12 counts, 6 categories as text and a label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeprof.bench_data.rows import Kind

_MEASURED, _COUNTS, _CATEGORIES = 180, 12, 6
_LEVELS = 500
"""Number of different values of a category."""


_SCHEMA = pa.schema(
    [("row_id", pa.int64()), ("moment_s", pa.int64())]
    + [(f"x{i}", pa.float32()) for i in range(_MEASURED)]
    + [(f"count{i}", pa.int64()) for i in range(_COUNTS)]
    + [(f"category{i}", pa.string()) for i in range(_CATEGORIES)]
    + [("label", pa.int64())]
)


def _draw(random: np.random.Generator, numbers: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    rows = len(numbers)
    # rounded to two decimals like sensor values, so that their text is not longer than float32
    measured = np.round(random.normal(0.0, 30.0, (_MEASURED, rows)), 2).astype(np.float32)
    counts = random.geometric(0.05, (_COUNTS, rows))
    levels = random.integers(_LEVELS, size=(_CATEGORIES, rows))
    label = (measured[0] + measured[1] > 0).astype(np.int64)
    columns = numbers, 1_700_000_000 + numbers // 10, *measured, *counts, *map(_category, levels)
    return dict(zip(_SCHEMA.names, (*columns, label), strict=True))


def _category(levels: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("level", pc.cast(pa.array(levels), pa.string()), "-")


kind = Kind("wide", _SCHEMA, 915, 4096, _draw)
