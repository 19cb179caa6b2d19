"""Read a worker's share of an epoch in the order that was asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from pipeprof.formats.base import ReadOptions
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.batching import BatchOptions
from pipeprof.loaders.dataset.planning import DatasetPlan, ObjectSplit
from pipeprof.loaders.dataset.prefetch import FirstRequest, PrefetchingReader, StoreReader
from pipeprof.loaders.dataset.sharding import find_worker, share_of, shuffled
from pipeprof.loaders.dataset.shuffling import (
    Draw,
    batch_draws,
    buffered,
    gathered,
    rows_generator,
)
from pipeprof.loaders.dataset.split_decoder import SplitDecoder


class EpochRows:
    """The rows of a data set, epoch by epoch. Each worker of each rank has its own share."""

    def __init__(
        self,
        plan: DatasetPlan,
        batching: BatchOptions,
        read: ReadOptions,
        skips: SkipCounter,
        numbered: bool = False,
    ) -> None:
        """Prepare; ``numbered`` is that of `SplitDecoder`."""
        self._store, self._splits = plan.store, plan.splits
        self._batching, self._read = batching, read
        self._decoder = SplitDecoder(plan, read, skips, numbered)

    def of_epoch(self, epoch: int, reader: StoreReader) -> Iterator[pa.RecordBatch]:
        """Yield the rows of this worker's share of one epoch in the order that was asked for."""
        batching, order = self._batching, self._batching.order
        if order.kind == "full":
            yield from self._drawn_rows(epoch, reader)
        elif order.kind == "buffer":
            worker, _ = find_worker()
            random = np.random.default_rng([batching.seed, epoch, batching.rank, worker])
            yield from buffered(self._split_rows(epoch, reader), order.buffer_rows, random)
        else:
            yield from self._split_rows(epoch, reader)

    def _split_rows(self, epoch: int, reader: StoreReader) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each split of the share, one split after another."""
        for item, split in self._share(epoch):
            random = None
            if self._batching.order.kind == "blocks":
                random = rows_generator(item, split, self._batching.seed, epoch)
            reader.begin_split()
            yield from self._decoder.rows(item, split, reader, random)

    def _drawn_rows(self, epoch: int, reader: StoreReader) -> Iterator[pa.RecordBatch]:
        """Yield batch by batch what it draws from all splits; each is decoded for a few rows."""
        for draws in self._draws(epoch):
            tables = []
            for draw in draws:
                reader.begin_split()
                decoded = pa.concat_batches(list(self._decoder.rows(*draw.split, reader)))
                tables.append(decoded.take(pa.array(draw.rows)))
            yield gathered(tables, draws)

    def _draws(self, epoch: int) -> Iterator[list[Draw]]:
        batching = self._batching
        place = (batching.rank, batching.world_size, *find_worker())
        return batch_draws(self._splits, batching.batch_size, batching.seed, epoch, place)

    def _share(self, epoch: int) -> Sequence[ObjectSplit]:
        """Return the splits that this worker of this rank reads in ``epoch``, in order."""
        batching, splits = self._batching, self._splits
        if batching.order.kind != "none":
            splits = tuple(shuffled(splits, batching.seed, epoch))
        return share_of(splits, batching.rank, batching.world_size, *find_worker())

    def _reads(self, epoch: int) -> Iterable[ObjectSplit]:
        """Return the splits in the order in which `of_epoch` reads them."""
        if self._batching.order.kind == "full":
            return (draw.split for draws in self._draws(epoch) for draw in draws)
        return self._share(epoch)

    def reader(self, epoch: int) -> StoreReader:
        """Return a reader for a pass that begins with ``epoch``."""
        reads = list(itertools.islice(self._reads(epoch), 2))
        only = None
        if len(reads) == 1 and not self._batching.repeat:
            only = self._decoder.first_request(*reads[0])
        one_request = only is not None and not only.prefetch
        if self._read.read_ahead and not one_request:
            return PrefetchingReader(self._store, self._first_requests(epoch))
        return StoreReader(self._store)

    def _first_requests(self, epoch: int) -> Iterator[FirstRequest]:
        """Yield the first request of each split, in the order in which `of_epoch` reads them."""
        empty = False
        while not empty:
            empty = True
            for item, split in self._reads(epoch):
                empty = False
                yield item, self._decoder.first_request(item, split)
            if not self._batching.repeat:
                return
            epoch += 1
