"""Documents as token ids: lists whose lengths spread like real text, ids drawn by Zipf's law."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeprof.bench_data.rows import random_of

_VOCABULARY = 50_257
_MEDIAN_LENGTH = 200
_SPREAD = 1.0
_LONGEST = 2048


class Tokens:
    name = "tokens"
    schema = pa.schema([("doc_id", pa.int64()), ("tokens", pa.list_(pa.int64()))])
    mean_row_bytes = 2550
    block_rows = 1024

    def block(self, seed: int, index: int) -> pa.RecordBatch:
        random = random_of(self.name, seed, index)
        rows = self.block_rows
        drawn = random.lognormal(np.log(_MEDIAN_LENGTH), _SPREAD, rows)
        lengths = drawn.astype(np.int64).clip(1, _LONGEST)
        # equal chances on a logarithmic scale: token k comes about as often as 1 / (k + 1)
        ids = np.power(_VOCABULARY, random.random(int(lengths.sum()))).astype(np.int64) - 1
        offsets = np.concatenate(([0], lengths.cumsum())).astype(np.int32)
        doc_id = np.arange(index * rows, (index + 1) * rows)
        tokens = pa.ListArray.from_arrays(pa.array(offsets), pa.array(ids))
        return pa.RecordBatch.from_arrays([pa.array(doc_id), tokens], schema=self.schema)


kind = Tokens()
