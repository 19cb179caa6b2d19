"""Divide splits among ranks and workers, so that each is read exactly once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch.distributed
from torch.utils.data import get_worker_info

from pipeprof.errors import UsageError

T = TypeVar("T")


def share_of(
    items: Sequence[T], rank: int, world_size: int, worker: int, workers: int
) -> Sequence[T]:
    """Return the items that a worker of a rank reads; the shares are disjoint and complete.
    Neighbouring splits go to different ranks, so that ranks stay even where splits are few."""
    return items[worker * world_size + rank :: workers * world_size]


def find_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return (rank, world size) as given, else of `torch.distributed`, else of the environment.
    Without any of these it is (0, 1). Raises `UsageError` where the two do not fit together."""
    if (rank is None) != (world_size is None):
        raise UsageError("give rank and world_size together, or neither")
    if rank is None or world_size is None:
        rank, world_size = _ambient_rank()
    if not 0 <= rank < world_size:
        raise UsageError(f"rank {rank} does not exist in a world of {world_size}")
    return rank, world_size


def _ambient_rank() -> tuple[int, int]:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    try:
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    except ValueError:
        raise UsageError("RANK and WORLD_SIZE in the environment must be whole numbers") from None


def shuffled(items: Sequence[T], seed: int, epoch: int) -> list[T]:
    """Return ``items`` in an order that seed and epoch decide, the same in every process."""
    order = np.random.default_rng([seed, epoch]).permutation(len(items))
    return [items[index] for index in order]


def find_worker() -> tuple[int, int]:
    """Return the worker's number and the number of workers; (0, 1) in the main process."""
    info = get_worker_info()
    return (info.id, info.num_workers) if info is not None else (0, 1)
