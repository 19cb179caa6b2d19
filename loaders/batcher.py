"""Record batches of any length → record batches of the length asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipeprof.measure.spans import stage
from pipeprof.model import Stage


def batches_of(
    tables: Iterator[pa.RecordBatch], rows: int, drop_last: bool
) -> Iterator[pa.RecordBatch]:
    """Cut and join ``tables`` to ``rows`` rows each; the last may be shorter, or is dropped."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for table in tables:
        at = 0
        while count + table.num_rows - at >= rows:
            take = rows - count
            waiting.append(table.slice(at, take))
            yield _joined(waiting)
            waiting, count, at = [], 0, at + take
        if at < table.num_rows:
            waiting.append(table.slice(at))
            count += table.num_rows - at
    if waiting and not drop_last:
        yield _joined(waiting)


def _joined(tables: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(tables) == 1:
        return tables[0]
    with stage(Stage.COLLATE):
        joined: pa.RecordBatch = pa.concat_batches(tables)
        return joined
