"""Decode the rows of a split from the bytes that its format requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof.errors import FormatError
from pipeprof.formats.base import Decoding, Fault, ReadOptions, ReadRequest, Split
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.object_plans import explain
from pipeprof.loaders.dataset.planning import DatasetPlan
from pipeprof.loaders.dataset.prefetch import StoreReader
from pipeprof.loaders.dataset.sharding import find_worker
from pipeprof.loaders.dataset.shuffling import permuted
from pipeprof.measure.stage_timer import stage
from pipeprof.model import Stage
from pipeprof.storage import ObjectInfo

ROW_NUMBER = "pipeprof.row"
"""The column of `SplitDecoder` with ``numbered``: where each row is stored. It holds the number of
the split times `ROWS_OF_SPLIT`, and the number of the row in the split."""
ROWS_OF_SPLIT = 2**40


class SplitDecoder:
    """Decodes the splits of a data set. Raises errors of damaged data, or counts what is lost."""

    def __init__(
        self, plan: DatasetPlan, read: ReadOptions, skips: SkipCounter, numbered: bool = False
    ) -> None:
        """Prepare; ``numbered`` adds the column `ROW_NUMBER`."""
        self._plan, self._read, self._skips = plan, read, skips
        self._numbers = {
            split: number for number, split in enumerate(plan.splits if numbered else ())
        }

    def first_request(self, item: ObjectInfo, split: Split) -> ReadRequest | None:
        """Return the first bytes that a split needs; ``None`` if unknown or the data is damaged.
        Damage is reported when the split itself is decoded."""
        with suppress(FormatError):
            first = next(self._decoding(item, split), None)
            return first if isinstance(first, ReadRequest) else None
        return None

    def rows(
        self,
        item: ObjectInfo,
        split: Split,
        reader: StoreReader,
        random: np.random.Generator | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split; the format requests bytes, and ``reader`` reads them. Where
        ``random`` is given, the rows of each decoded block are in a random order."""
        decoding = self._decoding(item, split)
        count = 0
        answer: Sequence[Any] | None = None
        while True:
            try:
                with stage(Stage.DECODE):
                    output, answer = decoding.send(answer), None
                    if isinstance(output, pa.RecordBatch):
                        rows = self._with_numbers(output, item, split, count)
                        count += output.num_rows
                        output = permuted(rows, random) if random is not None else rows
            except StopIteration:
                return
            except FormatError as error:
                self._skip(item, Fault(error, split.rows))
                return
            if isinstance(output, Fault):
                self._skip(item, output)
            elif isinstance(output, ReadRequest):
                answer = reader.read(item, output)
            else:
                yield output

    def _with_numbers(
        self, rows: pa.RecordBatch, item: ObjectInfo, split: Split, before: int
    ) -> pa.RecordBatch:
        """Add `ROW_NUMBER` where it is asked for; ``before`` rows of the split came before."""
        if not self._numbers:
            return rows
        first = self._numbers[item, split] * ROWS_OF_SPLIT + before
        numbers = np.arange(first, first + rows.num_rows)
        return rows.append_column(ROW_NUMBER, pa.array(numbers))

    def _decoding(self, item: ObjectInfo, split: Split) -> Decoding:
        return self._plan.decoder.decode(item.size, split, self._plan.schema, self._read)

    def _skip(self, item: ObjectInfo, fault: Fault) -> None:
        """Count what ``fault`` leaves out, or raise its error."""
        worker, _ = find_worker()
        self._skips.skip_rows(item.url, explain(fault.error, item), fault.rows, worker)
