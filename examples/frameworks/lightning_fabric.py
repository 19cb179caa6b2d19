"""A training with Lightning Fabric: `python lightning_fabric.py plain|wrap`."""

from __future__ import annotations

import lightning
import torch
from toy import Clock, loader, mode, model

import pipeprof


def main() -> None:
    clock, fabric = Clock(), lightning.Fabric(accelerator="cpu")
    fabric.launch()
    net, optimizer = fabric.setup(net := model(), torch.optim.SGD(net.parameters(), 0.1))
    train = loader()
    if mode() == "wrap":
        train = pipeprof.wrap(train, "train")
    for batch in fabric.setup_dataloaders(train):
        optimizer.zero_grad()
        fabric.backward(clock.loss(net, batch))
        optimizer.step()
    clock.report({"train": train.profile()} if mode() == "wrap" else {})


if __name__ == "__main__":
    main()
