"""What the trainings of this folder have in common: samples, a model, and a clock of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from statistics import fmean
from time import perf_counter, sleep
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES, BATCH = 320, 8
FETCH_S, STEP_S = 0.003, 0.004
"""Seconds that a sample takes to make, and a training step to run."""
_LONGEST_GAP_S = 0.15
"""A longer time between two steps is no wait for a batch, but the start of workers, or a pause."""


class Samples(Dataset[Any]):
    """Rows whose target is the sum of their values. Each takes a while to make."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        sleep(FETCH_S)
        return torch.arange(4, dtype=torch.float32) / 4 + index / SAMPLES


def loader(**options: Any) -> DataLoader[Any]:
    """Two workers, which cannot keep up with the training."""
    return DataLoader(Samples(), **{"batch_size": BATCH, "num_workers": 2} | options)


def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(4, 1)


class Clock:
    """Times the training steps of a script, without pipeprof."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self._steps: list[tuple[float, float]] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        begin_s = perf_counter()
        sleep(STEP_S)
        yield
        self._steps.append((begin_s, perf_counter()))

    def loss(self, net: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """Return the loss of a training step, which is timed and noted."""
        with self.step():
            loss = (net(batch).squeeze(1) - batch.sum(1)).square().mean()
            self.losses.append(round(loss.item(), 6))
        return loss

    @property
    def waited(self) -> float:
        """The share of the time that passed between two steps."""
        gaps = [after[0] - before[1] for before, after in pairwise(self._steps)]
        gap_s = fmean(each for each in gaps if each < _LONGEST_GAP_S)
        return gap_s / (gap_s + fmean(end - begin for begin, end in self._steps))

    def said(self, profiles: Mapping[str, Any]) -> str:
        """Return what this clock and the profiles say, as a line of JSON."""
        known = {name: each.to_dict() for name, each in profiles.items()}
        return json.dumps({"losses": self.losses, "waited": self.waited, "profiles": known})

    def report(self, profiles: Mapping[str, Any]) -> None:
        print(self.said(profiles))

    def train(self, batches: Any) -> None:
        """Train a model in a plain loop."""
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for batch in batches:
            optimizer.zero_grad()
            self.loss(net, batch).backward()
            optimizer.step()


def mode() -> str:
    """What is done to its loader: ``plain`` for nothing, ``wrap``, ``tune`` or ``callback``."""
    return sys.argv[1] if len(sys.argv) > 1 else "plain"
