"""What a worker takes longer for a batch than the training process: it needs new shared memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof

SCRIPT = """
import json, re, time
import torch
from torch.utils.data import DataLoader, default_collate
import pipeprof

def images(indices):
    time.sleep(0.01)
    return default_collate([image] * len(indices))

def profile(step_s, workers):
    loader = DataLoader(range(32 * 40), 32, collate_fn=images, num_workers=workers)
    loader = pipeprof.wrap(loader)
    for _ in loader:
        time.sleep(step_s)
    return loader.profile()

image = torch.zeros(3, 224, 224)
torch.set_num_threads(1)
in_main, in_worker = profile(0.015, 0), profile(0.001, 1)
whys = [" ".join(advice.why for advice in each.recommendations) for each in (in_main, in_worker)]
new = [each for each in in_main.batches.collate_new_bytes if each is not None]
print(json.dumps({
    "new": sum(new) / len(new) / 19.27e6,
    "rates": [re.findall("one worker gives ([0-9,]+)", why)[0].replace(",", "") for why in whys],
}))
"""
LARGE = str(2**30)
REUSES = {"MALLOC_MMAP_THRESHOLD_": LARGE, "MALLOC_TRIM_THRESHOLD_": LARGE}
RETURNS = {"MALLOC_MMAP_THRESHOLD_": "65536"}


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize(("allocator", "is_new"), [(REUSES, False), (RETURNS, True)])
def test_what_one_worker_would_give(allocator: dict[str, str], is_new: bool) -> None:
    """A batch of 19 MB takes 10 ms and more to make. In the training process its memory is new or
    not, as the allocator has it; in a worker it always is."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env={**os.environ, **allocator}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(run.stdout)
    assert found["new"] > 0.9 if is_new else found["new"] < 0.5
    promised, measured = map(float, found["rates"])
    assert promised == pytest.approx(measured, rel=0.3)


def test_what_new_memory_costs_is_measured() -> None:
    loader = pipeprof.wrap(DataLoader(torch.zeros(40, 2), 4))
    assert len([*loader]) == 10
    main = loader.recording().main
    first_s, again_s = main.new_shared_s_per_byte, main.release_shared_s_per_byte
    assert 1e-12 < again_s < first_s < 1e-7
    assert 1e-12 < main.new_private_s_per_byte < 1e-7


def test_the_memory_that_a_worker_needs_for_a_batch_is_counted() -> None:
    """A batch of 4 MB, in new shared memory."""
    loader = pipeprof.wrap(DataLoader(torch.zeros(160, 25_000), 40, num_workers=1), whole=True)
    assert len([*loader]) == 4
    new = loader.recording().batches.collate_new_bytes
    assert max(filter(None, new)) == pytest.approx(4e6, rel=0.2)
