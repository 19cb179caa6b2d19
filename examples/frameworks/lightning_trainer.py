"""A training with Lightning: `python lightning_trainer.py plain|wrap|tune|callback`."""

from __future__ import annotations

import tempfile
from typing import Any

import lightning
import torch
from toy import Clock, loader, mode, model

import pipeprof


class Model(lightning.LightningModule):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.net, self.clock = model(), clock

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
        return self.clock.loss(self.net, batch)

    def validation_step(self, batch: torch.Tensor, _: int) -> None:
        self.net(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), 0.1)


def main() -> None:
    clock, callbacks = Clock(), list[Any]()
    train, validation = loader(), loader()
    if mode() == "wrap":
        train, validation = pipeprof.wrap(train, "train"), pipeprof.wrap(validation, "validation")
    if mode() == "tune":
        train, validation = pipeprof.tune(train), pipeprof.tune(validation)
    if mode() == "callback":
        from pipeprof.integrations.lightning import PipeprofCallback

        callbacks = [PipeprofCallback()]
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=2, callbacks=callbacks, default_root_dir=folder,
            enable_progress_bar=False, enable_model_summary=False, logger=False,
        )  # fmt: skip
        trainer.fit(Model(clock), train, validation)
    if mode() == "tune":
        print(train.tuning())
    profiles = {"train": train, "validation": validation} if mode() == "wrap" else {}
    clock.report(
        callbacks[0].profiles if callbacks else {k: v.profile() for k, v in profiles.items()}
    )


if __name__ == "__main__":
    main()
