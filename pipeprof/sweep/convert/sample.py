"""A bounded sample of a data set's rows: some of every stretch of it, streamed, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from pipeprof import formats
from pipeprof.errors import FormatError, UsageError
from pipeprof.formats.base import Fault, ReadOptions, ReadRequest, Split
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.planning import DatasetPlan, explain, plan_dataset
from pipeprof.model import OnError, Sample
from pipeprof.storage import ObjectInfo
from pipeprof.storage.urls import redact
from pipeprof.units import format_bytes

LEAST_PARTS = 32
"""Where there are so many: of a few large files a little each."""

_Place = tuple[ObjectInfo, Split]


def plan_sample(
    url: str,
    columns: tuple[str, ...] | None,
    most_bytes: int,
    seed: int,
    storage_options: Mapping[str, Any] | None = None,
    read: ReadOptions | None = None,
    on_error: OnError = "fail",
) -> SampleReader:
    """Choose of the splits that a trial with ``columns`` reads. One of them is read, to see what
    bytes on storage become in RAM.

    Raises `StorageError`, `FormatError`.
    """
    reading = read or ReadOptions()
    skips = SkipCounter(on_error)
    trial = plan_dataset(url, columns, None, reading, storage_options, skips)
    if not trial.splits:
        raise FormatError(f"{redact(url)} holds no rows; there is nothing to convert.")
    data = trial
    if columns is not None:
        # row group by row group, as with all columns fewer of them make a split
        single = replace(reading, split_bytes=1) if trial.format_name == "parquet" else reading
        data = plan_dataset(url, None, None, single, storage_options, skips)
    count = len(trial.splits)
    open_split = partial(_SplitReader, data, reading, skips)
    expected = data.source.bytes * _growth(open_split(data.splits[len(data.splits) // 2]))
    wanted = min(count, max(LEAST_PARTS, int(count * most_bytes / max(expected, 1))))
    numbers = spread_evenly(count, wanted, seed)
    return SampleReader(
        data,
        open_split,
        parts=tuple(_within(data, trial.splits[number]) for number in numbers),
        numbers=frozenset(numbers),
        parts_in_all=count,
        most_bytes=most_bytes,
        expected_bytes=min(most_bytes, int(expected)),
    )


@dataclass
class SampleReader:
    """Which splits to take rows of, and how many bytes of them. It reads the sample as often as it
    is iterated, and holds a part of one split at a time."""

    data: DatasetPlan
    """All columns of it."""
    open_split: Callable[[_Place], _SplitReader]
    parts: tuple[tuple[_Place, ...], ...]
    """What to read of each chosen split, rows of all columns."""
    numbers: frozenset[int]
    """The chosen splits, as a trial counts them, which reads the asked columns only."""
    parts_in_all: int
    most_bytes: int
    """As rows lie in RAM."""
    expected_bytes: int
    """About; never more than ``most_bytes``."""
    taken: Sample | None = None
    """By the last whole pass."""

    @property
    def schema(self) -> pa.Schema:
        return self.data.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches in the data set's order. Raises `StorageError`, `FormatError`, and
        `UsageError` when not one row fits."""
        places = [place for part in self.parts for place in part]
        rows = taken = 0
        stored = 0.0
        waiting = sum(map(_size, places))
        roomy = 2 * self.expected_bytes <= self.most_bytes
        whole = len(self.parts) == self.parts_in_all
        for place in places:
            left = self.most_bytes - taken
            most = left if roomy else left * _size(place) // waiting
            waiting -= _size(place)
            part, own = self.open_split(place), 0
            for batch in part.batches():
                fitting = _fitting(batch, most)
                most -= fitting.nbytes
                own += fitting.num_rows
                taken += fitting.nbytes
                if fitting.num_rows:
                    yield fitting
                if fitting.num_rows < batch.num_rows:
                    part.finish()
                    break
            rows += own
            stored += _stored(place, part, own)
            whole = whole and own == part.rows
        if not rows:
            raise UsageError(
                f"not one row fits into a sample of {format_bytes(self.most_bytes)}; "
                "give a larger --sample"
            )
        total = self.data.source.bytes
        stored = total if whole else _with_footers(self.data, rows, stored)
        self.taken = Sample(
            rows=rows,
            ram_bytes=taken,
            share=min(1.0, stored / total),
            parts=len(self.parts),
            parts_in_all=self.parts_in_all,
            storage_bytes=round(stored),
        )


def spread_evenly(count: int, wanted: int, seed: int) -> tuple[int, ...]:
    """Of 0 … ``count`` - 1 one of each of ``wanted`` equal stretches; rising."""
    random = np.random.default_rng(seed)
    edges = [count * number // wanted for number in range(wanted + 1)]
    return tuple(int(random.integers(start, end)) for start, end in pairwise(edges))


def _within(data: DatasetPlan, place: _Place) -> tuple[_Place, ...]:
    item, whole = place
    return tuple(
        (other, split)
        for other, split in data.splits
        if other.path == item.path and whole.start <= split.start < whole.end
    )


def _growth(part: _SplitReader) -> float:
    """Bytes in RAM of one on storage."""
    first = next(part.batches(), None)
    part.finish()
    if first is None or not first.num_rows:
        return 1.0
    return float(first.nbytes / first.num_rows * part.rows / part.bytes)


def _fitting(batch: pa.RecordBatch, most: int) -> pa.RecordBatch:
    """The first rows of ``batch``, of at most ``most`` bytes."""
    if batch.nbytes > most:
        batch = batch[: max(0, batch.num_rows * most // batch.nbytes)]
        while batch.num_rows and batch.nbytes > most:  # rows differ in length
            batch = batch[: batch.num_rows // 2]
    return batch


def _size(place: _Place) -> int:
    """Bytes of a split on storage."""
    _, split = place
    if _counted(split):
        return sum(length for _, length in split.ranges[1:])
    return split.end - split.start


def _counted(split: Split) -> bool:
    """Whether its format says how many rows it has (Parquet): its ranges are all it takes then,
    the first being the footer."""
    return split.rows is not None


def _stored(place: _Place, part: _SplitReader, taken: int) -> float:
    """What ``taken`` rows of a split occupy on storage."""
    _, split = place
    if not part.rows:
        return 0.0
    if part.whole or _counted(split):
        return _size(place) * taken / part.rows
    return part.bytes * taken / part.rows


def _with_footers(data: DatasetPlan, rows: int, stored: float) -> float:
    """Where the rows of all splits are known, their share of the whole files."""
    counts = [split.rows for _, split in data.splits]
    known = [count for count in counts if count is not None]
    return data.source.bytes * rows / sum(known) if len(known) == len(counts) else stored


class _SplitReader:
    """One split, decoded as far as it is asked."""

    def __init__(
        self, data: DatasetPlan, read: ReadOptions, skips: SkipCounter, place: _Place
    ) -> None:
        self._item, self._split = place
        self._store, self._skips = data.store, skips
        self._decoding = formats.get(data.format_name).decode(
            self._item.size, self._split, data.schema, read
        )
        self._enough = False
        self.bytes = 0
        """Read of storage."""
        self.rows = 0
        """Decoded of these."""
        self.whole = False
        """Whether it was read to its end."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Raises `FormatError`, unless what cannot be read is to be left out."""
        answer: Any = None
        while True:
            try:
                wanted, answer = self._decoding.send(answer), None
            except StopIteration:
                self.whole = True
                return
            except FormatError as error:
                self._leave_out(Fault(error, self._split.rows))
                return
            if isinstance(wanted, Fault):
                self._leave_out(wanted)
            elif not isinstance(wanted, ReadRequest):
                self.rows += wanted.num_rows
                yield wanted
            elif self._enough:
                return
            else:
                answer = self._store.read(self._item, wanted.ranges)
                self.bytes += sum(map(len, answer))

    def finish(self) -> None:
        """Decode what was read, and read no more."""
        self._enough = True
        for _ in self.batches():
            pass
        self._decoding.close()

    def _leave_out(self, fault: Fault) -> None:
        self._skips.skip_rows(self._item.url, explain(fault.error, self._item), fault.rows)
