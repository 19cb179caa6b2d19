"""`pipeprof.open_dataset`: ready batches of tensors from a URL."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipeprof import formats
from pipeprof.errors import FormatError, UsageError
from pipeprof.formats.base import Decoding, Fault, ReadOptions, ReadRequest, Split
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.batching import batches_of
from pipeprof.loaders.dataset.planning import DatasetPlan, explain, plan_dataset
from pipeprof.loaders.dataset.prefetch import First, Reads, ReadsAhead
from pipeprof.loaders.dataset.sharding import find_rank, share_of, shuffled
from pipeprof.loaders.parent_watch import end_with_parent
from pipeprof.loaders.tensors import Batch
from pipeprof.measure.stage_timer import stage
from pipeprof.model import DataSource, OnError, Stage
from pipeprof.storage import ObjectInfo, Store

Transform = Callable[[Batch], Any]
Part = tuple[ObjectInfo, Split]


def open_dataset(
    url: str,
    *,
    columns: Sequence[str] | None = None,
    batch_size: int = 256,
    shuffle: bool = False,
    seed: int = 0,
    drop_last: bool = False,
    repeat: bool = False,
    transform: Transform | None = None,
    types: Mapping[str, str] | None = None,
    null_masks: bool = False,
    rank: int | None = None,
    world_size: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    read: ReadOptions | None = None,
    on_error: OnError = "fail",
) -> FileDataset:
    """Read CSV, Parquet or TFRecord as ready batches of tensors.

    Give the result to ``DataLoader(dataset, batch_size=None, ...)``. Each worker of each rank then
    reads splits of its own, without loss or repeat.

    Args:
        url: A file, folder or glob, local or at any URL that fsspec supports.
        columns: Read only these columns; ``None`` reads all.
        batch_size: Rows of a batch. A worker's last batch may be smaller.
        shuffle: Shuffle splits, and rows within a decoded block, anew in each epoch.
        seed: Decides the order together with the epoch, which ``set_epoch`` sets.
        drop_last: Leave out a worker's last batch where it is smaller.
        repeat: Never end. Epochs are counted on, and batches continue from one into the next.
        transform: Called with each batch, in the worker.
        types: Column to type, such as ``{"x": "float64"}``, where the file does not say.
        null_masks: Add a bool tensor ``NAME.null`` of shape [rows] for each column.
        rank: This process among all; by default that of ``torch.distributed``.
        world_size: The number of these processes; by default that of ``torch.distributed``.
        storage_options: Options of fsspec, for S3 those of s3fs. ``s3_client`` among them is
            ``"obstore"``, ``"pyarrow"`` or ``"s3fs"``.
        read: How files are cut and bytes are fetched.
        on_error: ``"fail"`` stops at damaged data. ``"skip"`` leaves out as little as the format
            allows, warns, and counts it in ``source.skipped``.

    Returns:
        An ``IterableDataset``. A batch maps each column to a tensor whose first dimension is the
        rows, or to ``Ragged`` values and offsets where rows differ in length.

    Raises:
        UsageError: An argument is wrong.
        StorageError: An object or folder cannot be listed or read.
        FormatError: The data cannot be decoded, and ``on_error`` is ``"fail"``.

    Examples:
        >>> dataset = pipeprof.open_dataset("data/parquet", batch_size=512, shuffle=True)
        >>> loader = DataLoader(dataset, batch_size=None, num_workers=4)
    """
    if batch_size < 1:
        raise UsageError(f"batch_size is {batch_size}; it must be at least 1")
    reading = read or ReadOptions()
    if min(reading.block_bytes, reading.request_bytes, reading.queue_depth) < 1:
        raise UsageError("block_bytes, request_bytes and queue_depth must be at least 1")
    rank, world_size = find_rank(rank, world_size)
    skips = SkipCounter(on_error)
    plan = plan_dataset(url, columns, types, reading, storage_options, skips)
    batching = BatchOptions(
        batch_size, shuffle, seed, drop_last, repeat, transform, null_masks, rank, world_size
    )
    return FileDataset(plan, batching, reading, skips)


@dataclass(frozen=True)
class BatchOptions:
    """How batches are made of rows; see `open_dataset`."""

    batch_size: int
    shuffle: bool
    seed: int
    drop_last: bool
    repeat: bool
    transform: Transform | None
    null_masks: bool
    rank: int
    world_size: int


class FileDataset(IterableDataset[Any]):
    """Made by `open_dataset`."""

    def __init__(
        self, plan: DatasetPlan, batching: BatchOptions, read: ReadOptions, skips: SkipCounter
    ) -> None:
        self._plan, self._batching, self._read = plan, batching, read
        self.skips = skips
        """What was left out so far."""
        # in memory that is shared, so that set_epoch reaches persistent workers too: forked ones
        # by this map, others by what torch makes of it as it is sent
        self._epoch = torch.frombuffer(mmap.mmap(-1, 8), dtype=torch.int64)

    @property
    def source(self) -> DataSource:
        """What is read."""
        return replace(self._plan.source, skipped=self.skips.total)

    @property
    def schema(self) -> pa.Schema:
        """Columns and their Arrow types."""
        return self._plan.schema

    @property
    def batch_size(self) -> int:
        return self._batching.batch_size

    @property
    def splits(self) -> int:
        """Parts that can be read side by side; more workers than that have nothing to do."""
        return len(self._plan.splits)

    @property
    def store(self) -> Store:
        """Where the objects are read."""
        return self._plan.store

    @property
    def objects(self) -> tuple[ObjectInfo, ...]:
        """Those that hold the splits."""
        return tuple(dict.fromkeys(item for item, _ in self._plan.splits))

    def only(self, numbers: Collection[int]) -> FileDataset:
        """The same, of these splits alone, counted from 0 in the order of the files."""
        splits = tuple(self._plan.splits[number] for number in sorted(numbers))
        return FileDataset(
            replace(self._plan, splits=splits), self._batching, self._read, self.skips
        )

    def set_epoch(self, epoch: int) -> None:
        """Before iterating: another epoch, another order."""
        self._epoch[0] = epoch

    def __iter__(self) -> Iterator[Any]:
        batching = self._batching
        for batch in batches_of(
            self._my_rows(), batching.batch_size, batching.drop_last, batching.null_masks
        ):
            if batching.transform is None:
                yield batch
                continue
            with stage(Stage.TRANSFORM):
                changed = batching.transform(batch)
            yield changed

    def _my_rows(self) -> Iterator[pa.RecordBatch]:
        """This worker's share of this rank's share; over and over if it is to repeat."""
        if get_worker_info() is not None:
            end_with_parent()
        begin = int(self._epoch[0])
        with closing(self._reads(begin)) as reads:
            for epoch in itertools.count(begin):
                empty = True
                for item, split in self._mine(epoch):
                    reads.begin()
                    for rows in self._rows(item, split, epoch, reads):
                        empty = False
                        yield rows
                if empty:
                    self.skips.check_empty_epoch(epoch, *_this_worker())
                if not self._batching.repeat or empty:
                    return

    def _mine(self, epoch: int) -> Sequence[Part]:
        """The splits that this worker of this rank reads in ``epoch``, in order."""
        batching, splits = self._batching, self._plan.splits
        if batching.shuffle:
            splits = tuple(shuffled(splits, batching.seed, epoch))
        return share_of(splits, batching.rank, batching.world_size, *_this_worker())

    def _reads(self, epoch: int) -> Reads:
        """Of a pass that begins with ``epoch``."""
        mine = self._mine(epoch)
        only = self._first(*mine[0]) if len(mine) == 1 and not self._batching.repeat else None
        at_once = only is not None and not only.prefetch
        if self._read.read_ahead and not at_once:  # else nothing comes after what is read first
            return ReadsAhead(self._plan.store, self._firsts(epoch))
        return Reads(self._plan.store)

    def _first(self, item: ObjectInfo, split: Split) -> ReadRequest | None:
        """What is read first of a split; what is wrong with it will be told when it is its turn."""
        with suppress(FormatError):
            first = next(self._decoding(item, split), None)
            return first if isinstance(first, ReadRequest) else None
        return None

    def _firsts(self, epoch: int) -> Iterator[First]:
        """The splits that `_my_rows` comes to, and what is read first of each."""
        while mine := self._mine(epoch):
            for item, split in mine:
                yield item, self._first(item, split)
            if not self._batching.repeat:
                return
            epoch += 1

    def _decoding(self, item: ObjectInfo, split: Split) -> Decoding:
        chosen = formats.get(self._plan.format_name)
        return chosen.decode(item.size, split, self.schema, self._read)

    def _rows(
        self, item: ObjectInfo, split: Split, epoch: int, reads: Reads
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one split. Its format says which bytes it needs; the store reads them."""
        decoding = self._decoding(item, split)
        order = self._order(item, split, epoch) if self._batching.shuffle else None
        answer: Sequence[Any] | None = None
        while True:
            try:
                with stage(Stage.DECODE):
                    wanted, answer = decoding.send(answer), None
                    if order is not None and isinstance(wanted, pa.RecordBatch):
                        wanted = wanted.take(pa.array(order.permutation(wanted.num_rows)))
            except StopIteration:
                return
            except FormatError as error:
                self._leave_out(item, Fault(error, split.rows))
                return
            if isinstance(wanted, Fault):
                self._leave_out(item, wanted)
            elif isinstance(wanted, ReadRequest):
                answer = reads.read(item, wanted)
            else:
                yield wanted

    def _order(self, item: ObjectInfo, split: Split, epoch: int) -> np.random.Generator:
        """Of the rows of a split, by its object's name without the folder."""
        name = crc32(item.url.rpartition("/")[2].encode())
        return np.random.default_rng([self._batching.seed, epoch, name, split.start])

    def _leave_out(self, item: ObjectInfo, fault: Fault) -> None:
        """Count it, or raise it."""
        worker, _ = _this_worker()
        self.skips.skip_rows(item.url, explain(fault.error, item), fault.rows, worker)


def _this_worker() -> tuple[int, int]:
    """Its number, and how many there are; (0, 1) in the main process."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info is not None else (0, 1)
