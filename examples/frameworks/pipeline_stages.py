"""A loader that works in threads, with one slow stage: `python pipeline_stages.py KIND WORK N`.

KIND: nodes (torchdata), grain, spdl. WORK: waits, as for storage, or computes in Python. N: threads
of the slow stage. Prints the rate by the loop's own clock, and the profile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, sleep, thread_time
from typing import Any

import torch

import pipeprof

SAMPLES, BATCH, ITEM_S, STEP_S = 960, 8, 0.004, 0.001


def read_image(index: int) -> torch.Tensor:
    """Make a sample as a slow storage would."""
    sleep(ITEM_S)
    return torch.full((4,), float(index))


def augment(index: int) -> torch.Tensor:
    """Make a sample by Python code, which holds the interpreter."""
    end = thread_time() + ITEM_S
    while thread_time() < end:
        sum(range(200))
    return torch.full((4,), float(index))


def nodes(work: Callable[[int], Any], threads: int) -> Any:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, ParallelMapper, Prefetcher

    rows = ParallelMapper(
        IterableWrapper(range(SAMPLES)), work, num_workers=threads, method="thread"
    )
    batches = ParallelMapper(Batcher(rows, BATCH), torch.stack, num_workers=1, method="thread")
    return Loader(Prefetcher(batches, 2))


def grain(work: Callable[[int], Any], threads: int) -> Any:
    from grain import MapDataset, ReadOptions

    def array(index: int) -> Any:
        return work(index).numpy()

    options = ReadOptions(num_threads=threads, prefetch_buffer_size=16)
    rows = MapDataset.range(SAMPLES).map(array).to_iter_dataset(options)
    return map(torch.from_numpy, rows.batch(BATCH))


def spdl(work: Callable[[int], Any], threads: int) -> Any:
    from spdl.pipeline import PipelineBuilder

    builder = PipelineBuilder().add_source(range(SAMPLES))
    builder = builder.pipe(work, concurrency=threads, output_order="input").aggregate(BATCH)
    pipeline = builder.pipe(torch.stack).add_sink(2).build(num_threads=threads)

    def batches() -> Iterator[torch.Tensor]:
        with pipeline.auto_stop():
            yield from pipeline

    return batches()


def samples_per_s(loader: Any) -> tuple[float, list[float]]:
    """Return the rate from the fifth batch on, and the sum of each batch."""
    moments, sums = [], []
    for batch in loader:
        moments.append(perf_counter())
        sums.append(float(batch.sum()))
        sleep(STEP_S)
    return (len(moments) - 5) * BATCH / (moments[-1] - moments[4]), sums


def main() -> None:
    kind, work, threads = sys.argv[1:]
    make = {each.__name__: each for each in (nodes, grain, spdl)}[kind]
    function = {"waits": read_image, "computes": augment}[work]
    loader = pipeprof.wrap(make(function, int(threads)), whole=True)
    rate, sums = samples_per_s(loader)
    bare_rate, bare_sums = samples_per_s(make(function, int(threads)))
    print(loader.profile(), file=sys.stderr)
    answer = {"rate": rate, "bare_rate": bare_rate, "same": sums == bare_sums}
    print(json.dumps(answer | {"profile": loader.profile().to_dict()}))


if __name__ == "__main__":
    main()
