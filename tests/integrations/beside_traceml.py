"""A training that TraceML profiles: `python beside_traceml.py plain|before|after PORT FOLDER`.

``before`` and ``after``: TraceML is started before or after the loader is wrapped.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import traceml_ai
from toy import Clock, loader, model
from traceml_ai.instrumentation.patches import dataloader_patch

import pipeprof

timed = 0


def start(port: str, folder: str) -> None:
    traceml_ai.init(
        mode="auto", aggregator_port=int(port), connect_timeout_sec=30.0, logs_dir=folder,
        on_missing_aggregator="raise",
    )  # fmt: skip
    region = dataloader_patch.timed_region

    def counted(*arguments: Any, **options: Any) -> Any:
        global timed
        timed += 1
        return region(*arguments, **options)

    dataloader_patch.timed_region = counted


def main() -> None:
    order, *where = sys.argv[1:]
    if order != "after":
        start(*where)
    train: Any = loader(persistent_workers=True)
    if order != "plain":
        train = pipeprof.wrap(train, "train", whole=True)
    if order == "after":
        start(*where)
    clock, net = Clock(), model()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(2):
        for batch in train:
            with traceml_ai.trace_step(net):
                optimizer.zero_grad()
                clock.loss(net, batch).backward()
                optimizer.step()
    print(f"TraceML timed {timed} calls")
    clock.report({} if order == "plain" else {"train": train.profile()})


if __name__ == "__main__":
    main()
