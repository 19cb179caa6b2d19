"""A training of several ranks with Accelerate, in which each rank prints one line of JSON.

`accelerate_ranks.py map|stream dispatch|each plain|wrap|callback`: what the data set is, whether
rank 0 reads for all or each rank for itself, and how pipeprof attaches.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from time import perf_counter, sleep
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import pipeprof

SAMPLES, BATCH, FETCH_S, STEP_S = 480, 4, 0.008, 0.004


class Rows(Dataset[Any]):
    """Samples that take a while to read, as from a network."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        sleep(FETCH_S)
        return torch.full((4,), float(index))


class Stream(IterableDataset[Any]):
    """The same, which each of its workers reads a part of."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for index in range(first, SAMPLES, step):
            yield Rows()[index]


def main() -> None:
    kind, reads, how = sys.argv[1:]
    accelerator = Accelerator(
        cpu=True,
        dataloader_config=DataLoaderConfiguration(dispatch_batches=reads == "dispatch"),
    )
    loaders, loader = None, DataLoader(Rows() if kind == "map" else Stream(), BATCH, num_workers=2)
    if how == "wrap":
        loader = pipeprof.wrap(loader, "train", whole=True)
    if how == "callback":
        from pipeprof.integrations.accelerate import profile_loaders

        loaders = profile_loaders(accelerator)
    batches = accelerator.prepare(loader)
    seen, moments = [], []
    for batch in batches:
        seen += batch[:, 0].tolist()
        sleep(STEP_S)
        accelerator.reduce(torch.ones(1))  # ranks wait for one another, as for gradients
        moments.append(perf_counter())
    quarter = len(moments) // 4
    rate = (len(moments) - 1 - quarter) * BATCH / (moments[-1] - moments[quarter])
    profiles = loaders.profiles if loaders else {"train": loader.profile()} if how == "wrap" else {}
    answer = {
        "rank": accelerator.process_index,
        "samples": seen,
        "rate": rate * accelerator.num_processes,
        "profiles": {name: each.to_dict() for name, each in profiles.items()},
    }
    if loaders:
        loaders.report(None, accelerator.process_index, accelerator.num_processes)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    accelerator.end_training()


if __name__ == "__main__":
    main()
