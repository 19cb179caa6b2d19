"""Read a bounded sample of a data set's rows, drawn at random from equal stretches of it."""

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
from pipeprof.loaders.dataset.object_plans import explain
from pipeprof.loaders.dataset.planning import DatasetPlan, plan_dataset
from pipeprof.model import OnError, Sample
from pipeprof.storage import ObjectInfo
from pipeprof.storage.urls import redact
from pipeprof.units import format_bytes

MIN_SAMPLED_SPLITS = 32
"""The least number of splits to sample, as far as there are so many."""

_Place = tuple[ObjectInfo, Split]
"""An object, and a split of it."""


def plan_sample(
    url: str,
    columns: tuple[str, ...] | None,
    most_bytes: int,
    seed: int,
    storage_options: Mapping[str, Any] | None = None,
    read: ReadOptions | None = None,
    on_error: OnError = "fail",
) -> SampleReader:
    """Choose some of the splits that a trial with ``columns`` reads. The beginning of one is read,
    to estimate the bytes in RAM per byte on storage. Raises `StorageError`, `FormatError`."""
    reading = read or ReadOptions()
    skips = SkipCounter(on_error)
    trial = plan_dataset(url, columns, None, reading, storage_options, skips)
    if not trial.splits:
        raise FormatError(f"{redact(url)} holds no rows; there is nothing to convert.")
    data = trial
    if columns is not None or trial.source.columns_left_out:
        # a split per row group, because with all columns fewer groups make a split
        groups = formats.get(trial.format_name).row_groups
        single = replace(reading, split_bytes=1) if groups else reading
        data = plan_dataset(url, None, None, single, storage_options, skips, form="table")
    count = len(trial.splits)
    open_split = partial(_SplitReader, data, reading, skips)
    expected = data.source.bytes * _ram_ratio(open_split(data.splits[len(data.splits) // 2]))
    wanted = min(count, max(MIN_SAMPLED_SPLITS, int(count * most_bytes / max(expected, 1))))
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
    """Reads the sample each time it is iterated, with a part of one split in memory at a time."""

    data: DatasetPlan
    """The plan of the data set with all columns."""
    open_split: Callable[[_Place], _SplitReader]
    parts: tuple[tuple[_Place, ...], ...]
    """For each chosen split of a trial, the splits with all columns that hold the same rows."""
    numbers: frozenset[int]
    """The numbers of the chosen splits in a trial, which reads only the requested columns."""
    parts_in_all: int
    """The number of splits of a trial."""
    most_bytes: int
    """The largest size of the sample in RAM."""
    expected_bytes: int
    """The estimated size of the sample in RAM, at most ``most_bytes``."""
    taken: Sample | None = None
    """What the last complete pass read."""

    @property
    def schema(self) -> pa.Schema:
        return self.data.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the sample's record batches in the order of the data set. Raises `StorageError`,
        `FormatError`, and `UsageError` when not one row fits."""
        places = [place for part in self.parts for place in part]
        size_of = _group_bytes if formats.get(self.data.format_name).row_groups else _range_bytes
        rows = taken = 0
        stored = 0.0
        unread = sum(map(size_of, places))
        roomy = 2 * self.expected_bytes <= self.most_bytes
        whole = len(self.parts) == self.parts_in_all
        for place in places:
            available = self.most_bytes - taken
            most = available if roomy else available * size_of(place) // unread
            unread -= size_of(place)
            part, part_rows = self.open_split(place), 0
            for batch in part.first_batches(most):
                part_rows += batch.num_rows
                taken += batch.nbytes
                yield batch
            rows += part_rows
            stored += _stored_bytes(size_of(place), part, part_rows)
            whole = whole and part_rows == part.rows
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
    """Draw one number from each of ``wanted`` equal stretches of 0 … ``count`` - 1, ascending."""
    random = np.random.default_rng(seed)
    edges = [count * number // wanted for number in range(wanted + 1)]
    return tuple(int(random.integers(start, end)) for start, end in pairwise(edges))


def _within(data: DatasetPlan, place: _Place) -> tuple[_Place, ...]:
    """Return the splits of ``data`` that start within ``place``."""
    item, outer = place
    return tuple(
        (other, split)
        for other, split in data.splits
        if other.path == item.path and outer.start <= split.start < outer.end
    )


def _ram_ratio(part: _SplitReader) -> float:
    """Return the bytes in RAM per byte on storage, from the first rows of a split."""
    first = next(part.batches(), None)
    part.finish()
    if first is None or not first.num_rows:
        return 1.0
    return float(first.nbytes / first.num_rows * part.rows / part.bytes)


def _fitting(batch: pa.RecordBatch, most: int) -> pa.RecordBatch:
    """Return the first rows of ``batch`` that have at most ``most`` bytes."""
    if batch.nbytes > most:
        batch = batch[: max(0, batch.num_rows * most // batch.nbytes)]
        while batch.num_rows and batch.nbytes > most:  # rows differ in length
            batch = batch[: batch.num_rows // 2]
    return batch


def _group_bytes(place: _Place) -> int:
    """Return the bytes on storage of a split of row groups. Its first range is the footer."""
    return sum(length for _, length in place[1].ranges[1:])


def _range_bytes(place: _Place) -> int:
    """Return the bytes on storage of a split that is a range of bytes."""
    return place[1].end - place[1].start


def _stored_bytes(size: int, part: _SplitReader, taken: int) -> float:
    """Return the bytes on storage of ``taken`` rows of a split, which has ``size`` bytes."""
    if not part.rows:
        return 0.0
    return (size if part.whole else part.bytes) * taken / part.rows


def _with_footers(data: DatasetPlan, rows: int, stored: float) -> float:
    """Return the bytes of ``rows`` with their share of footers; ``stored`` without counts."""
    counts = [split.rows for _, split in data.splits]
    known = [count for count in counts if count is not None]
    return data.source.bytes * rows / sum(known) if len(known) == len(counts) else stored


class _SplitReader:
    """Decodes one split, as far as its batches are iterated."""

    def __init__(
        self, data: DatasetPlan, read: ReadOptions, skips: SkipCounter, place: _Place
    ) -> None:
        self._item, self._split = place
        self._store, self._skips = data.store, skips
        self._decoding = data.decoder.decode(self._item.size, self._split, data.schema, read)
        self._finishing = False
        self.bytes = 0
        """The bytes read from storage."""
        self.rows = 0
        """The rows decoded from these bytes."""
        self.whole = False
        """Whether the split was read to its end."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the split. Raises `FormatError`, unless bad data is skipped."""
        answer: Any = None
        while True:
            try:
                event, answer = self._decoding.send(answer), None
            except StopIteration:
                self.whole = True
                return
            except FormatError as error:
                self._skip(Fault(error, self._split.rows))
                return
            if isinstance(event, Fault):
                self._skip(event)
            elif not isinstance(event, ReadRequest):
                self.rows += event.num_rows
                yield event
            elif self._finishing:
                return
            else:
                answer = self._store.read(self._item, event.ranges)
                self.bytes += sum(map(len, answer))

    def first_batches(self, most: int) -> Iterator[pa.RecordBatch]:
        """Yield the first rows of the split, of at most ``most`` bytes in RAM."""
        for batch in self.batches():
            fitting = _fitting(batch, most)
            most -= fitting.nbytes
            if fitting.num_rows:
                yield fitting
            if fitting.num_rows < batch.num_rows:
                self.finish()
                return

    def finish(self) -> None:
        """Decode what was read, and read nothing else."""
        self._finishing = True
        for _ in self.batches():
            pass
        self._decoding.close()

    def _skip(self, fault: Fault) -> None:
        self._skips.skip_rows(self._item.url, explain(fault.error, self._item), fault.rows)
