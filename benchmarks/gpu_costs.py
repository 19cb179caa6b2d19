"""What profiling adds to a batch beside a GPU: plain and profiled epochs in random order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pipeprof
from benchmarks.overhead_stats import added, say

Step = Callable[[Any], None]
_WARM_UP = 10
_ARMS = ("plain", "wrap", "wrap and to_device", "plain again")


class Busy(Dataset[torch.Tensor]):
    """Batches of 256 KiB, each of which takes ``seconds`` of a core."""

    def __init__(self, batches: int, seconds: float) -> None:
        self._batches, self._seconds = batches, seconds
        self._batch = torch.ones(256, 256)

    def __len__(self) -> int:
        return self._batches

    def __getitem__(self, index: int) -> torch.Tensor:
        end_s = perf_counter() + self._seconds
        while perf_counter() < end_s:
            pass
        return self._batch


@dataclass(frozen=True)
class Case:
    name: str
    loader: Callable[[], DataLoader[Any]]
    step: Step
    rounds: int


def small_step(device: torch.device) -> Step:
    """Return a step of about half a millisecond, nearly all of which is the host's."""
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(batch: torch.Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        model(batch).mean().backward()
        optimizer.step()

    return step


def small_cases(device: torch.device, rounds: int) -> Sequence[Case]:
    step = small_step(device)
    return (
        Case("no workers", lambda: DataLoader(Busy(400, 0.0), None, pin_memory=True), step, rounds),
        Case(
            "1 worker, 1.5 ms",
            lambda: DataLoader(Busy(400, 0.0015), None, num_workers=1, pin_memory=True),
            step, rounds,
        ),
    )  # fmt: skip


def print_costs(cases: Sequence[Case], device: torch.device) -> None:
    print("\nWhat profiling adds to a batch, with its 95 % interval")
    for case in cases:
        seconds = measured(case, device)
        plain = seconds["plain"]
        print(f"{case.name}: {np.median(plain) * 1e3:.2f} ms a batch")
        for arm in _ARMS[1:]:
            cost, share = (
                added(seconds[arm][:, None], plain[:, None], relative=relative)
                for relative in (False, True)
            )
            print(f"  {arm:<20}{say(cost, False):<36}{say(share, True)}", flush=True)


def measured(case: Case, device: torch.device) -> dict[str, Any]:
    """Return the seconds of a batch in each epoch of each arm."""
    seconds: dict[str, list[float]] = {arm: [] for arm in _ARMS}
    chance = random.Random(0)
    for _ in range(case.rounds):
        for arm in chance.sample(_ARMS, len(_ARMS)):
            loader: Iterable[Any] = case.loader()
            if "wrap" in arm:
                loader = pipeprof.wrap(loader)
            seconds[arm].append(_epoch(loader, case.step, "to_device" in arm, device))
    return {arm: np.array(each) for arm, each in seconds.items()}


def _epoch(batches: Iterable[Any], step: Step, by_us: bool, device: torch.device) -> float:
    """Return the seconds of a batch past the warm-up."""
    begun_s, number = 0.0, 0
    for number, batch in zip(count(), batches, strict=False):
        if number == _WARM_UP:
            torch.cuda.synchronize(device)
            begun_s = perf_counter()
        moved = pipeprof.to_device(batch, device) if by_us else plainly_moved(batch, device)
        step(moved)
    torch.cuda.synchronize(device)
    return (perf_counter() - begun_s) / (number + 1 - _WARM_UP)


def plainly_moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    return [part.to(device, non_blocking=True) for part in batch]
