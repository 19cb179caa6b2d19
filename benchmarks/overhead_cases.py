"""The loaders on which the cost of profiling is measured."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from pipeprof.bench_data.images import kind as images

WORKERS = 1
"""On a small machine, two would compete with the main process for cores, which has more effect than
hooks have. With one, hooks are no smaller a share of the CPU time of a batch."""
BATCH_SIZE = 16
BATCH_S = 0.0015
"""Seconds per batch of the fast loader."""
PERIOD = 8192
"""Batches after which pipeprof has done all of its periodic work, such as folding its rows."""
_ENDLESS = 10**9
_VALUES = 256


@dataclass(frozen=True)
class Case:
    name: str
    dataset: Dataset[Any]
    batch_size: int
    workers: int
    batches: int
    """Batches per timed block: few, as the machine's speed differs little between consecutive
    blocks only if they are short. A multiple of the workers."""
    rounds: int
    """Rounds per session."""
    time_share: float
    judged: tuple[str, ...]
    """Which of `wall_s` and `cpu_s` are evaluated."""
    relative: bool
    """Whether the cost is a share of a batch's time; else it is in seconds."""
    quiet: float
    """Limit of the interval of plain against plain; beyond it, the bar is not evaluated."""
    most: float
    """The bar: the highest cost allowed."""
    most_whole: float | None = None
    """The bar where every batch is recorded in full."""

    def loader(self) -> DataLoader[Any]:
        context = "fork" if self.workers else None
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            num_workers=self.workers,
            multiprocessing_context=context,
        )

    def ahead(self) -> int:
        """Return how many batches are ready after a while without a request."""
        return 2 * self.workers


class Endless(Dataset[Any]):
    def __len__(self) -> int:
        return _ENDLESS


class Next(Endless):
    """Samples that cost nearly nothing."""

    def __getitem__(self, index: int) -> int:
        return index


class Work(Endless):
    """A fixed amount of work per sample. A fixed time would hide what profiling adds."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats
        self._values = np.random.default_rng(0).standard_normal(_VALUES, np.float32)

    def __getitem__(self, index: int) -> torch.Tensor:
        values = self._values
        for _ in range(self._repeats):
            values = np.tanh(values)
        return torch.from_numpy(values)


class Photographs(Endless):
    """JPEGs in memory, decoded and resized as for training."""

    def __init__(self) -> None:
        self._encoded: list[bytes] = images.block(0, 0).column("image").to_pylist()

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with Image.open(io.BytesIO(self._encoded[index % len(self._encoded)])) as image:
            pixels = np.array(image.resize((224, 224), Image.Resampling.BILINEAR))
        return torch.from_numpy(pixels), index % 1000


def cases() -> Iterator[Case]:
    """Yield the cases, the cheapest per batch first."""
    yield Case(
        "num_workers=0, nearly nothing a batch", Next(), batch_size=1, workers=0,
        batches=PERIOD, rounds=5, time_share=0.1,
        judged=("wall_s", "cpu_s"), relative=False, most=2e-6, quiet=0.5e-6,
    )  # fmt: skip
    yield Case(
        f"about 1.5 ms a batch, {WORKERS} worker", Work(repeats(WORKERS * BATCH_S)),
        BATCH_SIZE, WORKERS, batches=4, rounds=400, time_share=0.7,
        judged=("wall_s", "cpu_s"), relative=True, most=0.005, quiet=0.0025, most_whole=0.01,
    )  # fmt: skip
    yield Case(
        f"4 JPEGs a batch, decoded and resized, {WORKERS} worker", Photographs(), 4, WORKERS,
        batches=2, rounds=100, time_share=0.2,
        judged=("wall_s", "cpu_s"), relative=True, most=0.01, quiet=0.005,
    )  # fmt: skip


def repeats(batch_s: float) -> int:
    """Return with how many repeats a worker takes ``batch_s`` for a batch on this machine."""
    few, many = 10, 110
    slope_s = (_batch_s(many) - _batch_s(few)) / (many - few)
    return max(1, round(few + (batch_s - _batch_s(few)) / slope_s))


def _batch_s(repeats: int) -> float:
    batches = iter(DataLoader(Work(repeats), batch_size=BATCH_SIZE))
    times = []
    for _ in range(50):
        start = perf_counter()
        next(batches)
        times.append(perf_counter() - start)
    return float(np.median(times))
