"""A loader with pinned memory, from its workers to the GPU: the stages that need one."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.measure.nvml import Nvml
from tests.gpu.kernels import no_waiting

pytestmark = [
    pytest.mark.gpu,
    # CUDA has threads, of which Python 3.12 warns where workers are forked
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]

FLOATS = 2**16


class Rows(Dataset):
    def __len__(self) -> int:
        return 40 * 16

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((FLOATS,), index, dtype=torch.float32)


def test_pinning_and_copying_are_stages(spin, figure):
    loader = DataLoader(Rows(), batch_size=16, num_workers=2, pin_memory=True)
    wrapped = pipeprof.wrap(loader)
    for index, batch in enumerate(wrapped):
        moved = pipeprof.to_device(batch, "cuda")
        assert batch.is_pinned()
        assert int(moved[3, 0]) == 16 * index + 3
    profile = wrapped.profile()
    pin, h2d = profile.stages["pin"], profile.stages["h2d"]
    assert pin.mean_s > 0
    assert h2d.mean_s > 0
    assert h2d.bytes == h2d.count * 16 * FLOATS * 4
    assert {"pin", "h2d"}.isdisjoint(profile.missing)
    figure("pin, 4 MiB batches", f"{pin.mean_s * 1e3:.2f} ms a batch")
    figure("h2d, 4 MiB batches", f"{h2d.mean_s * 1e3:.2f} ms a batch")


def test_a_loop_that_runs_ahead_is_fed_whatever_the_host_waits(spin):
    class Batches:
        ready = torch.ones(4, pin_memory=True)

        def __iter__(self):
            for _ in range(60):
                time.sleep(0.002)
                yield self.ready

    wrapped = pipeprof.wrap(Batches())
    for batch in wrapped:
        pipeprof.to_device(batch, "cuda")
        spin(0.010)
    torch.cuda.synchronize()
    diagnosis = wrapped.profile().diagnosis
    assert diagnosis.verdict == "fed"
    assert diagnosis.starved_fraction < 0.03


def test_a_profiled_loop_never_waits_for_the_device(spin):
    batches = [torch.ones(4, pin_memory=True) for _ in range(20)]
    wrapped = pipeprof.wrap(batches)
    with no_waiting():
        began = time.perf_counter()
        for batch in wrapped:
            pipeprof.to_device(batch, "cuda")
            spin(0.010)
        took_s = time.perf_counter() - began
    assert took_s < 0.1, "200 ms of kernels were queued"
    torch.cuda.synchronize()


def test_the_driver_tells_use_and_memory(spin, figure):
    held = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    sampler = Nvml(every_s=0.0)
    spin(1.5)
    time.sleep(1.2)
    sampler.sample()  # the first starts the library
    began = time.perf_counter()
    sample = sampler.sample()
    cost_s = time.perf_counter() - began
    torch.cuda.synchronize()
    if sample is None:
        pytest.skip("NVML does not tell")
    assert held.nbytes <= sample.memory_bytes <= torch.cuda.mem_get_info()[1]
    assert sample.utilisation is None or sample.utilisation > 0.5
    use = "not told" if sample.utilisation is None else f"{sample.utilisation:.0%}"
    memory = f"{sample.memory_bytes / 2**30:.1f} GiB"
    figure("NVML", f"use {use} under load, memory {memory}; {cost_s * 1e6:.0f} µs a sample")
