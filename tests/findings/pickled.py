"""The same rows as Python objects, in an array, in a tensor, and in a file that a worker opens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

ROWS, WIDTH = 150_000, 6


class Objects(Dataset[torch.Tensor]):
    """12.6 MB when pickled."""

    def __init__(self) -> None:
        self.rows = [
            {"name": f"sample-{row:08}", "box": [float(row + nth) for nth in range(WIDTH)]}
            for row in range(ROWS)
        ]

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(self.rows[index]["box"])


class Array(Objects):
    """3.6 MB, which are copied at once, but still block whoever sends them."""

    def __init__(self) -> None:
        self.array = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(self.array[index].copy())


class Shared(Objects):
    """A tensor, of which a worker gets the descriptor."""

    def __init__(self) -> None:
        self.tensor = torch.arange(ROWS * WIDTH, dtype=torch.float32).reshape(ROWS, WIDTH)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.tensor[index]


class Mapped(Objects):
    """A file that a worker maps when it first reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.array: np.ndarray | None = None
        np.save(path, Array().array)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.array is None:
            self.array = np.load(self.path, mmap_mode="r")
        return torch.from_numpy(self.array[index].copy())
