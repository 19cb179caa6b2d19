"""A residual network in plain torch, and its training in mixed precision.

The network is that of He et al., "Deep residual learning for image recognition" (2015), table 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

Precision = Literal["bfloat16", "float16"]

RESNET_50, RESNET_152 = (3, 4, 6, 3), (3, 8, 36, 3)
"""Blocks of each of the four stages."""
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Bottleneck(nn.Module):
    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_convolved(channels, width, 1), nn.ReLU(inplace=True),
            *_convolved(width, width, 3, stride), nn.ReLU(inplace=True),
            *_convolved(width, 4 * width, 1),
        )  # fmt: skip
        same = stride == 1 and channels == 4 * width
        self.shortcut = (
            nn.Identity() if same else nn.Sequential(*_convolved(channels, 4 * width, 1, stride))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _convolved(channels: int, width: int, side: int, stride: int = 1) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(channels, width, side, stride, padding=side // 2, bias=False)
    return convolution, nn.BatchNorm2d(width)


def residual_network(blocks: Sequence[int], classes: int = 1000) -> nn.Module:
    """Return a network with so many ``blocks`` in each stage."""
    layers: list[nn.Module] = [
        *_convolved(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1),
    ]  # fmt: skip
    channels = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            width, stride = 64 * 2**stage, 2 if stage and not block else 1
            layers.append(Bottleneck(channels, width, stride))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
    return nn.Sequential(*layers)


class Training:
    """The steps of a training. With float16 the loss is scaled, for which the host waits once in
    each step; with bfloat16 it never waits."""

    def __init__(self, blocks: Sequence[int], precision: Precision, device: torch.device) -> None:
        self._model = residual_network(blocks).to(device, memory_format=torch.channels_last)
        self._optimizer = torch.optim.SGD(self._model.parameters(), 0.01, momentum=0.9)
        self._scaler = torch.amp.GradScaler(device.type, enabled=precision == "float16")
        self._loss = nn.CrossEntropyLoss()
        self._device, self._dtype = device, getattr(torch, precision)
        self._mean, self._std = (
            torch.tensor(each, device=device).view(3, 1, 1) for each in (_MEAN, _STD)
        )

    def step(self, photos: torch.Tensor, labels: torch.Tensor) -> None:
        """Train on ``photos`` on the device: [batch, height, width, 3] of uint8."""
        x = (photos.permute(0, 3, 1, 2).float() / 255 - self._mean) / self._std
        with torch.autocast(self._device.type, self._dtype):
            loss = self._loss(self._model(x), labels)
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
