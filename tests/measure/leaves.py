"""Leaves of a batch that tests of `to_device` move."""

from __future__ import annotations

import torch


def tensor(*shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.float32)


class Graph:
    """Moves itself, takes a device only, and hides what it holds."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def to(self, device: torch.device) -> Graph:
        return Graph(str(device))
