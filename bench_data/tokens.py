"""Draw documents of token ids, with lengths that vary as in real text and ids by Zipf's law."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeprof.bench_data.rows import Kind

_VOCABULARY = 50_257
_MEDIAN_LENGTH = 200
_SPREAD = 1.0
_LONGEST = 2048


_SCHEMA = pa.schema([("doc_id", pa.int64()), ("tokens", pa.list_(pa.int64()))])


def _draw(random: np.random.Generator, numbers: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    drawn = random.lognormal(np.log(_MEDIAN_LENGTH), _SPREAD, len(numbers))
    lengths = drawn.astype(np.int64).clip(1, _LONGEST)
    # uniform on a logarithmic scale, so token k has a frequency of about 1 / (k + 1)
    ids = np.power(_VOCABULARY, random.random(int(lengths.sum()))).astype(np.int64) - 1
    offsets = np.concatenate(([0], lengths.cumsum())).astype(np.int32)
    tokens = pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids))
    return {"doc_id": numbers, "tokens": tokens}


kind = Kind("tokens", _SCHEMA, 2550, 1024, _draw)
