"""An iterator of Ray Data that waits for one slow part: `python ray_data.py plain|wrap PART`.

PART: production_wait (the data set's tasks), or collate (in the process that trains).
"""

from __future__ import annotations

import logging
import sys
from time import sleep
from typing import Any

import ray
import torch
from toy import BATCH, FETCH_S, SAMPLES, Clock, mode

import pipeprof


def main() -> None:
    slow = sys.argv[2]
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False,
        logging_level=logging.ERROR,
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False

    def made(batch: dict[str, Any]) -> dict[str, Any]:
        sleep(BATCH * FETCH_S if slow == "production_wait" else 0)
        return batch

    def collate(batch: dict[str, Any]) -> torch.Tensor:
        sleep(BATCH * FETCH_S if slow == "collate" else 0)
        rows = torch.as_tensor(batch["id"], dtype=torch.float32)
        return rows[:, None] / SAMPLES + torch.arange(4) / 4

    data = ray.data.range(SAMPLES, override_num_blocks=SAMPLES // BATCH)
    data.context.execution_options.preserve_order = True
    train = data.map_batches(made, batch_size=BATCH).iter_torch_batches(
        batch_size=BATCH, collate_fn=collate
    )
    if mode() == "wrap":
        train = pipeprof.wrap(train, "train")
    clock = Clock()
    clock.train(train)
    clock.report({"train": train.profile()} if mode() == "wrap" else {})


if __name__ == "__main__":
    main()
