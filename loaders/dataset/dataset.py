"""`pipeprof.open_dataset`: ready batches of tensors from a URL."""

from __future__ import annotations

import itertools
import mmap
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipeprof.errors import UsageError
from pipeprof.formats.base import ReadOptions
from pipeprof.formats.readers import each_reader
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.batching import BatchOptions, Transform, batches_of
from pipeprof.loaders.dataset.epoch_rows import EpochRows
from pipeprof.loaders.dataset.order import parse_order
from pipeprof.loaders.dataset.planning import ColumnsLeftOut, DatasetPlan, ObjectSplit, plan_dataset
from pipeprof.loaders.dataset.sharding import find_rank, find_worker
from pipeprof.loaders.parent_watch import end_with_parent
from pipeprof.measure.stage_timer import stage
from pipeprof.model import DataSource, OnError, Stage
from pipeprof.storage import ObjectInfo, Store
from pipeprof.storage.local import LocalStore


def open_dataset(
    url: str,
    *,
    columns: Sequence[str] | None = None,
    batch_size: int = 256,
    shuffle: bool | str = False,
    seed: int = 0,
    drop_last: bool = False,
    repeat: bool = False,
    transform: Transform | None = None,
    types: Mapping[str, str] | None = None,
    null_masks: bool = False,
    objects: bool = False,
    rank: int | None = None,
    world_size: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    read: ReadOptions | None = None,
    on_error: OnError = "fail",
    reader: str | None = None,
) -> FileDataset:
    """Read CSV, Parquet, TFRecord, Arrow, JSON Lines or WebDataset as batches of tensors.

    Give the result to ``DataLoader(dataset, batch_size=None, ...)``. Each worker of each rank then
    reads splits of its own, without loss or repeat.

    Args:
        url: A file, folder or glob, local or at any URL that fsspec supports.
        columns: Read only these columns; ``None`` reads all that have a tensor form.
        batch_size: Rows of a batch. A worker's last batch may be smaller.
        shuffle: The order, which is another one in each epoch. ``True`` or ``"blocks"`` shuffles
            splits, and rows within a decoded block; ``"shards"`` splits alone. ``"buffer:10000"``
            shuffles splits, and draws rows from a buffer of so many in each worker. ``"full"``
            reads each row where it is stored, for Parquet and images.
        seed: Decides the order together with the epoch, which ``set_epoch`` sets.
        drop_last: Leave out a worker's last batch where it is smaller.
        repeat: Never end. A batch may hold the end of one epoch and the start of the next.
        transform: Called with each batch, in the worker.
        types: Column to type, such as ``{"x": "float64"}``, where the file does not say.
        null_masks: Add a bool tensor ``NAME.null`` of shape [rows] for each column.
        objects: Hand on columns without a tensor form, such as structs, as ``pyarrow.Array``.
        rank: The rank of this process; by default that of ``torch.distributed``.
        world_size: The number of processes; by default that of ``torch.distributed``.
        storage_options: Options of fsspec, for S3 those of s3fs. ``s3_client`` among them is
            ``"obstore"``, ``"pyarrow"`` or ``"s3fs"``.
        read: How files are split and bytes are fetched.
        on_error: ``"fail"`` stops at damaged data. ``"skip"`` leaves out as little as the format
            allows, warns, and counts it in ``source.skipped``.
        reader: The library that decodes the objects, each as a whole, such as ``"polars"``; see
            ``pipeprof readers``. By default the format's own decoder.

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
    if reader is not None:
        [url] = each_reader(url, [reader])
    reading, order = read or ReadOptions(), parse_order(shuffle)
    _check_sizes(batch_size, reading)
    place = find_rank(rank, world_size)
    skips = SkipCounter(on_error)
    plan = plan_dataset(
        url, columns, types, reading, storage_options, skips,
        form="any" if objects else "tensor", smallest=order.kind == "full",
    )  # fmt: skip
    for note in plan.notes:
        warnings.warn(note, ColumnsLeftOut, stacklevel=2)
    if order.kind == "full":
        _check_random_access(plan, on_error)
    batching = BatchOptions(
        batch_size, order, seed, drop_last, repeat, transform, null_masks, *place
    )
    return FileDataset(plan, batching, reading, skips)


def _check_sizes(batch_size: int, read: ReadOptions) -> None:
    if batch_size < 1:
        raise UsageError(f"batch_size is {batch_size}; it must be at least 1")
    if min(read.block_bytes, read.request_bytes, read.queue_depth) < 1:
        raise UsageError("block_bytes, request_bytes and queue_depth must be at least 1")


def _check_random_access(plan: DatasetPlan, on_error: OnError) -> None:
    if any(split.rows is None for _, split in plan.splits):
        raise UsageError(
            "shuffle='full' needs the number of rows of each part, which these "
            f"{plan.source.format} files do not say; use a buffer, such as shuffle='buffer:10000'"
        )
    if on_error == "skip":
        raise UsageError("shuffle='full' reads damaged parts again and again; use on_error='fail'")


class FileDataset(IterableDataset[Any]):
    """The data set that `open_dataset` returns. Each worker of each rank reads its own splits."""

    def __init__(
        self, plan: DatasetPlan, batching: BatchOptions, read: ReadOptions, skips: SkipCounter
    ) -> None:
        self._plan, self._batching, self._read = plan, batching, read
        self._rows = EpochRows(plan, batching, read, skips)
        self.skips = skips
        """Raises errors of damaged data, or counts what is skipped."""
        # shared memory, so that set_epoch reaches persistent workers: forked ones by this map,
        # others because torch moves the tensor to shared memory when it sends it
        self._epoch = torch.frombuffer(mmap.mmap(-1, 8), dtype=torch.int64)

    @property
    def source(self) -> DataSource:
        """What is read, with what was skipped so far."""
        return replace(self._plan.source, skipped=self.skips.total)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the data is not read, and how it is read; a sentence each."""
        return (*self._plan.notes, *self._plan.store.notes)

    @property
    def schema(self) -> pa.Schema:
        """Columns and their Arrow types."""
        return self._plan.schema

    @property
    def unforkable(self) -> str | None:
        """The module of a library that decodes in threads, which do not survive a fork; ``None`` if
        there is none. Once it is imported, workers must be spawned."""
        return self._plan.decoder.unforkable

    @property
    def batch_size(self) -> int:
        """Rows of a batch."""
        return self._batching.batch_size

    @property
    def splits(self) -> int:
        """Number of parts that can be read in parallel; more workers than that stay idle."""
        return len(self._plan.splits)

    @property
    def object_splits(self) -> tuple[ObjectSplit, ...]:
        """The splits with their objects, in the order of the files."""
        return self._plan.splits

    @property
    def store(self) -> Store:
        """The store that the objects are read from."""
        return self._plan.store

    @property
    def objects(self) -> tuple[ObjectInfo, ...]:
        """The objects that hold the splits."""
        return tuple(dict.fromkeys(item for item, _ in self._plan.splits))

    def only(self, numbers: Collection[int]) -> FileDataset:
        """Return a data set of these splits alone, numbered from 0 in the order of the files."""
        splits = tuple(self._plan.splits[number] for number in sorted(numbers))
        return FileDataset(
            replace(self._plan, splits=splits), self._batching, self._read, self.skips
        )

    def numbered(self) -> FileDataset:
        """Return a data set whose batches also have the column `ROW_NUMBER`, which says where each
        row is stored, and no transform."""
        plain = replace(self._batching, transform=None)
        copy = FileDataset(self._plan, plain, self._read, self.skips)
        copy._rows = EpochRows(self._plan, plain, self._read, self.skips, numbered=True)
        return copy

    @property
    def read_options(self) -> ReadOptions:
        """How files are split and bytes are fetched."""
        return self._read

    @property
    def shuffled(self) -> bool:
        """Whether the order is another one than that of the files."""
        return self._batching.order.kind != "none"

    def with_read_options(self, read: ReadOptions) -> FileDataset:
        """Return a data set of the same splits and the same epoch, whose bytes are fetched by
        ``read``."""
        store = LocalStore(read) if isinstance(self.store, LocalStore) else self.store
        copy = FileDataset(replace(self._plan, store=store), self._batching, read, self.skips)
        copy._epoch = self._epoch
        return copy

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch before iterating; with ``shuffle`` each epoch has an order of its own."""
        self._epoch[0] = epoch

    def __iter__(self) -> Iterator[Any]:
        batching = self._batching
        for batch in batches_of(
            self._share_rows(), batching.batch_size, batching.drop_last, batching.null_masks
        ):
            if batching.transform is None:
                yield batch
                continue
            with stage(Stage.TRANSFORM):
                changed = batching.transform(batch)
            yield changed

    def _share_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this worker's share, for one epoch or, with ``repeat``, for all."""
        if get_worker_info() is not None:
            end_with_parent()
        begin = int(self._epoch[0])
        with closing(self._rows.reader(begin)) as reader:
            for epoch in itertools.count(begin):
                empty = True
                for rows in self._rows.of_epoch(epoch, reader):
                    empty = False
                    yield rows
                if empty:
                    self.skips.check_empty_epoch(epoch, *find_worker())
                if not self._batching.repeat or empty:
                    return
