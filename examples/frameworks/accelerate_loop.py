"""A training with Accelerate: `python accelerate_loop.py plain|wrap|tune|callback`."""

from __future__ import annotations

import tempfile

import torch
from accelerate import Accelerator
from toy import Clock, loader, mode, model

import pipeprof


def main() -> None:
    clock, accelerator, net = Clock(), Accelerator(cpu=True), model()
    loaders, train, optimizer = None, loader(), torch.optim.SGD(net.parameters(), 0.1)
    if mode() == "wrap":
        train = pipeprof.wrap(train, "train")
    if mode() == "tune":
        train = pipeprof.tune(train)
    if mode() == "callback":
        from pipeprof.integrations.accelerate import profile_loaders

        loaders = profile_loaders(accelerator)
    net, optimizer, batches = accelerator.prepare(net, optimizer, train)
    for number, batch in enumerate(batches):
        optimizer.zero_grad()
        accelerator.backward(clock.loss(net, batch))
        optimizer.step()
        if number == 30:
            with tempfile.TemporaryDirectory() as folder:
                accelerator.save_state(folder)
    if mode() == "tune":
        print(train.tuning())
    profiles = {"train": train.profile()} if mode() == "wrap" else {}
    clock.report(loaders.profiles if loaders else profiles)


if __name__ == "__main__":
    main()
