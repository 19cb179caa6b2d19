"""A first training script, as most are written: a folder of JPEGs, Pillow, a plain DataLoader.

It knows nothing of pipeprof. The accelerator is emulated: a sleep, which uses no core.

    python examples/train_photos.py FOLDER --step-ms 80
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset[tuple[torch.Tensor, int]]):
    """JPEGs in folders that are named by their class, cropped and flipped at random."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*/*.jpg"))
        self.classes = sorted({file.parent.name for file in self.files})

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        file = self.files[index]
        with Image.open(file) as photo:
            image = random_crop(photo.convert("RGB")).resize((224, 224), Image.Resampling.BICUBIC)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(image)), self.classes.index(file.parent.name)


def random_crop(image: Image.Image) -> Image.Image:
    side = int(min(image.size) * random.uniform(0.6, 1.0))
    left = random.randint(0, image.width - side)
    top = random.randint(0, image.height - side)
    return image.crop((left, top, left + side, top + side))


def train_step(images: torch.Tensor, labels: torch.Tensor, seconds: float) -> None:
    time.sleep(seconds)  # forward, backward, update: elsewhere than on this machine's cores


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--step-ms", type=float, default=80)
    parser.add_argument("--batches", type=int, default=100)
    asked = parser.parse_args()

    torch.set_num_threads(1)  # the training is elsewhere, so its threads are not wanted here
    loader = DataLoader(Photos(asked.folder), batch_size=asked.batch_size, shuffle=True)
    done = 0
    while done < asked.batches:
        for images, labels in loader:
            train_step(images, labels, asked.step_ms / 1000)
            done += 1


if __name__ == "__main__":
    main()
