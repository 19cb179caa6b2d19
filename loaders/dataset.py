"""`pipeprof.open_dataset`: ready batches of tensors from a URL."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from pipeprof import formats
from pipeprof.errors import FormatError, UsageError
from pipeprof.formats.base import Need, ReadOptions, Split
from pipeprof.loaders.batcher import batches_of
from pipeprof.loaders.plan import DatasetPlan, explain, plan_dataset
from pipeprof.loaders.shards import find_rank, shard_of, shuffled
from pipeprof.loaders.tensors import Batch, to_tensors
from pipeprof.measure.spans import stage
from pipeprof.model import DataSource, Stage
from pipeprof.storage import ObjectInfo

Transform = Callable[[Batch], Any]


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
) -> FileDataset:
    """Files, a folder or a glob, local or at any URL that fsspec knows, as ready batches.

    Give it to ``DataLoader(dataset, batch_size=None, …)``: each worker of each rank reads its own
    splits, and makes batches of ``batch_size`` rows of them (its last may be smaller, unless
    ``drop_last``). A batch maps column → tensor or `Ragged`; see `pipeprof.loaders.tensors`.

    ``shuffle`` orders splits, and rows within a decoded block, by ``seed`` and the epoch of
    `FileDataset.set_epoch`. ``repeat`` never ends: it counts epochs on by itself, and batches run
    on from one into the next. ``transform`` gets each batch, in the worker. ``rank`` and
    ``world_size`` default to torch.distributed's.
    Raises `UsageError`, `StorageError`, `FormatError`.
    """
    if batch_size < 1:
        raise UsageError(f"batch_size is {batch_size}; it must be at least 1")
    reading = read or ReadOptions()
    rank, world_size = find_rank(rank, world_size)
    plan = plan_dataset(url, columns, types, reading, storage_options)
    making = Making(
        batch_size, shuffle, seed, drop_last, repeat, transform, null_masks, rank, world_size
    )
    return FileDataset(plan, making, reading)


@dataclass(frozen=True)
class Making:
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

    def __init__(self, plan: DatasetPlan, making: Making, read: ReadOptions) -> None:
        self._plan, self._making, self._read = plan, making, read
        # in shared memory, so that set_epoch reaches persistent workers too
        shared: Any = torch.zeros(1, dtype=torch.int64)
        self._epoch: torch.Tensor = shared.share_memory_()

    @property
    def source(self) -> DataSource:
        """What is read."""
        return self._plan.source

    @property
    def schema(self) -> pa.Schema:
        """Columns and their Arrow types."""
        return self._plan.schema

    @property
    def batch_size(self) -> int:
        return self._making.batch_size

    @property
    def splits(self) -> int:
        """Parts that can be read side by side; more workers than that have nothing to do."""
        return len(self._plan.splits)

    def set_epoch(self, epoch: int) -> None:
        """Before iterating: another epoch, another order."""
        self._epoch[0] = epoch

    def __iter__(self) -> Iterator[Any]:
        making = self._making
        for table in batches_of(self._my_rows(), making.batch_size, making.drop_last):
            with stage(Stage.COLLATE):
                batch = to_tensors(table, making.null_masks)
            if making.transform is None:
                yield batch
                continue
            with stage(Stage.TRANSFORM):
                changed = making.transform(batch)
            yield changed

    def _my_rows(self) -> Iterator[pa.RecordBatch]:
        """This worker's share of this rank's share; over and over if it is to repeat."""
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        making = self._making
        shard = shard_of(making.rank, making.world_size, worker, workers)
        for epoch in itertools.count(int(self._epoch[0])):
            splits = list(self._plan.splits)
            if making.shuffle:
                splits = shuffled(splits, making.seed, epoch)
            empty = True
            for item, split in shard.of(splits):
                for rows in self._rows(item, split, epoch):
                    empty = False
                    yield rows
            if not making.repeat or empty:
                return

    def _rows(self, item: ObjectInfo, split: Split, epoch: int) -> Iterator[pa.RecordBatch]:
        """The rows of one split. Its format says which bytes it needs; the store reads them."""
        chosen = formats.get(self._plan.format_name)
        decoding = chosen.decode(item.size, split, self.schema, self._read)
        name = crc32(item.url.rpartition("/")[2].encode())
        order = np.random.default_rng([self._making.seed, epoch, name, split.start])
        answer: Sequence[Any] | None = None
        while True:
            try:
                with stage(Stage.DECODE):
                    wanted = decoding.send(answer)
                    if self._making.shuffle and not isinstance(wanted, Need):
                        wanted = wanted.take(pa.array(order.permutation(wanted.num_rows)))
            except StopIteration:
                return
            except FormatError as error:
                raise explain(error, item) from None
            if isinstance(wanted, Need):
                answer = self._plan.store.read(item, wanted.ranges)
            else:
                answer = None
                yield wanted
