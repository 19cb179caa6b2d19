"""`torch.profiler` around a wrapped loop records what it does without us, and so do we."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader

import pipeprof
from tests.loaders.forms import SAMPLES, Marked
from tests.loaders.test_inside import is_whole

BATCHES = SAMPLES // 4


def trained(loader: Any, around: str) -> tuple[list[Any], int]:
    """The batches, and how many calls of torch's loader the profiler has recorded."""
    torch.manual_seed(3)
    batches = iter(loader) if around == "steps" else loader
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        found = [batch[:, 0].tolist() for batch in batches]
    names = [event.name for event in profiler.events()]
    return found, sum(name.startswith("enumerate(DataLoader)#") for name in names)


@pytest.mark.parametrize("around", ["all", "steps"])
@pytest.mark.parametrize("workers", [0, 1])
def test_both_profilers_have_every_batch(workers: int, around: str) -> None:
    def made() -> DataLoader[Any]:
        return DataLoader(Marked(), 4, shuffle=True, num_workers=workers)

    loader = pipeprof.wrap(made(), whole=True)
    (bare, recorded), (batches, recorded_with_us) = trained(made(), around), trained(loader, around)
    assert batches == bare
    assert recorded_with_us == recorded == BATCHES + 1, "the last call finds that there is no more"
    assert is_whole(loader.profile(), workers)
