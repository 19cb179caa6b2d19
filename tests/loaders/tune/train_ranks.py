"""Trains with ranks that wait for each other in each step. Rank 1 loads more slowly.

    train_ranks.py FOLDER [--no-group] [--other-loader] [--absent] [--epochs N]

Each rank writes its samples and its tuning to FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import pipeprof
from pipeprof.loaders.tune import ranks


class Slow(Dataset[torch.Tensor]):
    """Each sample waits for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __len__(self) -> int:
        return 8000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self._seconds)
        return torch.tensor([index])


class Other(Slow):
    """The same, by another name."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-group", action="store_true")
    parser.add_argument("--other-loader", action="store_true")
    parser.add_argument("--absent", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if not options.no_group:
        dist.init_process_group("gloo")
    if options.absent:
        ranks._TIMEOUT_S = 3.0
    kind = Other if options.other_loader and rank else Slow
    data = kind(0.002 if rank == 1 else 0.0005)
    sampler: DistributedSampler[torch.Tensor] = DistributedSampler(data, world, rank, shuffle=True)
    plain = DataLoader(data, batch_size=8, sampler=sampler)
    loader = plain if options.absent and rank else pipeprof.tune(plain, budget=1.0)
    samples: list[int] = []
    for _ in range(options.epochs):
        for batch in loader:
            samples += batch.flatten().tolist()
            time.sleep(0.004)
            if not options.no_group:
                dist.all_reduce(torch.ones(1))
    found = {"samples": samples, "expected": [*sampler] * options.epochs}
    if loader is not plain:
        found |= {"text": str(loader.tuning()), **loader.tuning().to_dict()}
    (options.folder / f"{rank}.json").write_text(json.dumps(found))
    if not options.no_group:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
