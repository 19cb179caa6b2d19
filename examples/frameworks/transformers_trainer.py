"""A training with transformers: `python transformers_trainer.py plain|wrap|tune|callback`."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch.utils.data import Subset
from toy import Clock, Samples, mode, model
from transformers import Trainer, TrainingArguments

import pipeprof


class Rows(Samples):
    def __getitem__(self, index: int) -> Any:
        return {"rows": super().__getitem__(index)}


class Model(torch.nn.Module):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.net, self.clock = model(), clock

    def forward(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        if self.training:
            return {"loss": self.clock.loss(self.net, rows)}
        return {"loss": self.net(rows).mean()}


class WrappingTrainer(Trainer):
    """Wraps or tunes its training loader, as a script can that has a trainer of its own."""

    profiled: Any = None

    def get_train_dataloader(self) -> Any:
        loader = super().get_train_dataloader()
        tunes = mode() == "tune"
        self.profiled = pipeprof.tune(loader) if tunes else pipeprof.wrap(loader, "train")
        return self.profiled


def main() -> None:
    clock, callbacks = Clock(), list[Any]()
    if mode() == "callback":
        from pipeprof.integrations.transformers import PipeprofCallback

        callbacks = [PipeprofCallback()]
    few = Subset(Rows(), range(80))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=8, dataloader_num_workers=2,
            eval_strategy="steps", eval_steps=30, save_steps=50, use_cpu=True, report_to=[],
            disable_tqdm=True,
        )  # fmt: skip
        trainer = (WrappingTrainer if mode() in ("wrap", "tune") else Trainer)(
            Model(clock), arguments, train_dataset=Rows(), eval_dataset=few, callbacks=callbacks
        )
        trainer.train()
    if mode() == "tune":
        print(trainer.profiled.tuning())
    profiles = {"train": trainer.profiled.profile()} if mode() == "wrap" else {}
    clock.report(callbacks[0].profiles if callbacks else profiles)


if __name__ == "__main__":
    main()
