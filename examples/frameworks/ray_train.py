"""A training with Ray Train on two workers: `python ray_train.py plain|wrap|callback OUT`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from ray.train.torch import TorchTrainer, prepare_data_loader, prepare_model
from toy import Clock, loader, mode, model

import pipeprof


def train(config: dict[str, Any]) -> None:
    clock, batches, profiles = Clock(), loader(prefetch_factor=4), {}
    if config["wrap"]:
        batches = profiled = pipeprof.wrap(batches, "train")
    net = prepare_model(model())
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for number, batch in enumerate(prepare_data_loader(batches)):
        optimizer.zero_grad()
        clock.loss(net, batch).backward()
        optimizer.step()
        if number == 10:
            ray.train.report({"loss": clock.losses[-1]})
        if number == 15:
            with tempfile.TemporaryDirectory() as folder:
                torch.save(net.state_dict(), Path(folder, "model.pt"))
                checkpoint = ray.train.Checkpoint.from_directory(folder)
                ray.train.report({"loss": clock.losses[-1]}, checkpoint=checkpoint)
    if config["wrap"]:
        profiles = {"train": profiled.profile()}
    if not ray.train.get_context().get_world_rank():
        Path(config["answer"]).write_text(clock.said(profiles))


def main() -> None:
    callbacks = list[Any]()
    if mode() == "callback":
        from pipeprof.integrations.ray import PipeprofRayCallback

        callbacks = [PipeprofRayCallback(sys.argv[2])]
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=True)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        TorchTrainer(
            train, train_loop_config={"wrap": mode() == "wrap", "answer": str(answer)},
            scaling_config=ray.train.ScalingConfig(num_workers=2),
            run_config=ray.train.RunConfig(callbacks=callbacks, storage_path=folder),
        ).fit()  # fmt: skip
        print(answer.read_text())


if __name__ == "__main__":
    main()
