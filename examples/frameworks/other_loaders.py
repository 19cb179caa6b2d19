"""A plain loop over loaders of other libraries: `python other_loaders.py plain|wrap KIND`.

KIND: stateful (torchdata), nodes (torchdata), webdataset, datasets (Hugging Face), streaming
(MosaicML), litdata, grain, spdl, geometric (PyG), monai, fastai.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

import torch
from toy import BATCH, FETCH_S, SAMPLES, Clock, Samples, mode

import pipeprof


def slow(values: Any) -> torch.Tensor:
    """Make a sample of what was read."""
    sleep(FETCH_S)
    return torch.as_tensor(values, dtype=torch.float32)


def row(index: int) -> list[float]:
    return [each / 4 + index / SAMPLES for each in range(4)]


def stateful(_: Path) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(Samples(), BATCH, num_workers=2)


def nodes(_: Path) -> Any:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper, Prefetcher

    rows = ParallelMapper(
        IterableWrapper(map(row, range(SAMPLES))), slow, num_workers=2, method="thread"
    )
    batches = ParallelMapper(Batcher(rows, BATCH), torch.stack, num_workers=1, method="thread")
    return Loader(Prefetcher(batches, 2))


def webdataset(folder: Path) -> Any:
    import webdataset as wds

    for shard in range(2):
        with wds.TarWriter(str(folder / f"{shard}.tar")) as tar:
            for index in range(shard, SAMPLES, 2):
                tar.write({"__key__": f"{index:06}", "json": row(index)})
    data = wds.WebDataset(str(folder / "{0..1}.tar"), shardshuffle=False)
    samples = data.decode().to_tuple("json").map_tuple(slow).map(lambda each: each[0])
    return wds.WebLoader(samples, batch_size=BATCH, num_workers=2)


def datasets(_: Path) -> Any:
    from datasets import Dataset

    rows = Dataset.from_dict({"row": list(map(row, range(SAMPLES)))})
    return torch.utils.data.DataLoader(
        rows.to_iterable_dataset(num_shards=2).map(lambda each: {"row": slow(each["row"])}),
        batch_size=BATCH, num_workers=2,
        collate_fn=lambda rows: torch.stack([torch.as_tensor(each["row"]) for each in rows]),
    )  # fmt: skip


def streaming(folder: Path) -> Any:
    from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

    class Rows(StreamingDataset):
        def __getitem__(self, index: int) -> torch.Tensor:
            return slow(super().__getitem__(index)["row"])

    with MDSWriter(out=str(folder), columns={"row": "json"}) as writer:
        for index in range(SAMPLES):
            writer.write({"row": row(index)})
    return StreamingDataLoader(Rows(local=str(folder), batch_size=BATCH), BATCH, num_workers=2)


def litdata(folder: Path) -> Any:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    class Rows(StreamingDataset):
        def __getitem__(self, index: Any) -> torch.Tensor:
            return slow(super().__getitem__(index))

    writer = BinaryWriter(str(folder), chunk_bytes="1MB")
    for index in range(SAMPLES):
        writer[index] = row(index)
    writer.done()
    writer.merge()
    return StreamingDataLoader(
        Rows(str(folder)), batch_size=BATCH, num_workers=2, collate_fn=torch.stack
    )


def grain(_: Path) -> Any:
    from grain import MapDataset, ReadOptions

    rows = MapDataset.range(SAMPLES).map(lambda index: slow(row(index)).numpy())
    options = ReadOptions(num_threads=2, prefetch_buffer_size=4)
    return map(torch.from_numpy, rows.batch(BATCH).to_iter_dataset(options))


def spdl(_: Path) -> Any:
    from spdl.pipeline import PipelineBuilder

    builder = (
        PipelineBuilder()
        .add_source(map(row, range(SAMPLES)))
        .pipe(slow, concurrency=2, output_order="input")
    )
    pipeline = builder.aggregate(BATCH).pipe(torch.stack).add_sink(2).build(num_threads=2)

    def batches() -> Iterator[torch.Tensor]:
        with pipeline.auto_stop():
            yield from pipeline

    return batches()


def geometric(_: Path) -> Any:
    from torch_geometric.data import Data
    from torch_geometric.loader import NodeLoader
    from torch_geometric.sampler import BaseSampler, SamplerOutput

    class Lone(BaseSampler):
        """Samples nodes without neighbours."""

        def sample_from_nodes(self, index: Any, **options: Any) -> SamplerOutput:
            sleep(FETCH_S * len(index.node))
            none = torch.empty(0, dtype=torch.int64)
            known = index.input_id, index.time
            return SamplerOutput(node=index.node, row=none, col=none, edge=None, metadata=known)

        def sample_from_edges(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    rows = torch.tensor(list(map(row, range(SAMPLES))))
    graph = Data(x=rows, edge_index=torch.empty(2, 0, dtype=torch.int64))
    return NodeLoader(
        graph, Lone(), batch_size=BATCH, num_workers=2, filter_per_worker=False,
        transform=lambda found: found.x,
    )  # fmt: skip


def monai(_: Path) -> Any:
    from monai.data import ThreadDataLoader

    return ThreadDataLoader(Samples(), batch_size=BATCH, num_workers=2, use_thread_workers=True)


def fastai(_: Path) -> Any:
    from fastai.data.load import DataLoader

    return DataLoader(Samples(), bs=BATCH, num_workers=2)


_MAKERS = (
    stateful, nodes, webdataset, datasets, streaming, litdata, grain, spdl, geometric, monai,
    fastai,
)  # fmt: skip
KINDS: dict[str, Callable[[Path], Any]] = {each.__name__: each for each in _MAKERS}


def main() -> None:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        train = KINDS[sys.argv[2]](Path(folder))
        if mode() == "wrap":
            train = pipeprof.wrap(train, "train")
        clock.train(train)
        clock.report({"train": train.profile()} if mode() == "wrap" else {})


if __name__ == "__main__":
    main()
