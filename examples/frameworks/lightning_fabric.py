"""A training with Lightning Fabric: `python lightning_fabric.py plain|wrap|tune`."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext

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
    if mode() == "tune":
        train = pipeprof.tune(train)
    for number, batch in enumerate(fabric.setup_dataloaders(train)):
        optimizer.zero_grad()
        fabric.backward(clock.loss(net, batch))
        optimizer.step()
        if number == 30:
            # under `pipeprof run` a checkpoint of Fabric has its name without this
            pause = pipeprof.pause("checkpoint") if mode() == "wrap" else nullcontext()
            with tempfile.TemporaryDirectory() as folder, pause:
                fabric.save(f"{folder}/checkpoint.pt", {"model": net})
    if mode() == "tune":
        print(train.tuning())
    clock.report({"train": train.profile()} if mode() == "wrap" else {})


if __name__ == "__main__":
    main()
