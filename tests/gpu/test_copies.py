"""`to_device` on a real GPU: the bytes, the time of the copy alone, and nothing that waits."""

from __future__ import annotations

from statistics import median
from time import perf_counter

import pytest
import torch

from pipeprof.measure.copies import DeviceCopy, this_thread
from pipeprof.measure.h2d import to_device
from tests.gpu.kernels import no_waiting, timed_s

pytestmark = pytest.mark.gpu

MIB = 2**20
SIZE = 256 * MIB


@pytest.fixture(autouse=True)
def nothing_noted(cuda):
    torch.cuda.synchronize()
    this_thread.copies.take()


def host(size: int, pinned: bool) -> torch.Tensor:
    return torch.ones(size, dtype=torch.uint8, pin_memory=pinned)


def taken() -> list[DeviceCopy]:
    torch.cuda.synchronize()
    return this_thread.copies.take()


def rate(seconds: float) -> str:
    return f"{SIZE / seconds / 1e9:.1f} GB/s"


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "pageable"])
def test_a_copy_takes_as_long_as_without_us(pinned, figure):
    source = host(SIZE, pinned)
    plain, ours = [], []
    for _ in range(7):  # in turns, so that a drift of the machine hits both
        plain.append(timed_s(lambda: source.to("cuda", non_blocking=True)))
        to_device({"x": source}, "cuda")
        (copy,) = taken()
        ours.append(copy.seconds)
        assert (copy.bytes, copy.copies, copy.pageable_copies) == (SIZE, 1, int(not pinned))
    kind = "pinned" if pinned else "pageable"
    figure(f"h2d, {kind}", f"{rate(median(ours))}; a plain copy {rate(median(plain))}")
    # the driver copies pageable memory by the processor, which is not as steady
    assert median(ours) == pytest.approx(median(plain), rel=0.1 if pinned else 0.4)


@pytest.mark.parametrize("non_blocking", [True, False])
def test_work_queued_before_does_not_count(non_blocking, spin):
    source = host(16 * MIB, pinned=True)
    timed_s(lambda: source.to("cuda"))  # allocates
    alone_s = timed_s(lambda: source.to("cuda", non_blocking=True))
    spin(0.100)
    began = perf_counter()
    to_device(source, "cuda", non_blocking=non_blocking)
    host_s = perf_counter() - began
    (copy,) = taken()
    assert copy.seconds == pytest.approx(alone_s, rel=0.5, abs=0.5e-3)
    assert (host_s > 0.05) == (not non_blocking), "only a blocking copy waits for it"


def test_a_side_stream_copies_beside_the_work_that_is_queued(spin, figure):
    side = torch.cuda.Stream()
    source = torch.arange(SIZE // 8).pin_memory()
    to_device(source, "cuda", stream=side)  # memory for the side stream
    taken()
    kernel = torch.cuda.Event()
    spin(0.200)
    kernel.record()
    moved = to_device([source, "text"], "cuda", stream=side)
    (copy,) = taken_while_running(kernel)
    torch.cuda.synchronize()
    assert torch.equal(moved[0].cpu(), source)
    assert copy.bytes == SIZE
    figure("h2d, pinned, on a side stream", rate(copy.seconds))


def taken_while_running(kernel: torch.cuda.Event) -> list[DeviceCopy]:
    copies: list[DeviceCopy] = []
    while not copies and not kernel.query():
        copies = this_thread.copies.take()
    assert copies, "the copy waited for the kernel"
    return copies


def test_the_work_after_waits_for_the_side_stream(spin):
    side = torch.cuda.Stream()
    source = torch.arange(64 * MIB // 8).pin_memory()
    for turn in range(5):
        with torch.cuda.stream(side):
            spin(0.010)
        moved = to_device(source + turn, "cuda", stream=side, pin=True)
        total = moved.sum()
        del moved  # its memory must not be given away before the sum is done
        torch.zeros(64 * MIB // 8, dtype=torch.int64, device="cuda")
        assert total.item() == (source + turn).sum().item()


def test_what_is_on_the_device_already_is_no_copy(spin):
    side = torch.cuda.Stream()
    there = torch.zeros(4, device="cuda")
    spin(0.020)
    there += 1
    moved = to_device({"there": there, "host": torch.ones(4)}, "cuda", stream=side)
    assert moved["there"] is there
    assert torch.equal(moved["there"].cpu(), torch.ones(4))
    (copy,) = taken()
    assert (copy.copies, copy.bytes) == (1, 16)


def test_what_is_pinned_first_is_no_copy_of_pageable_memory():
    to_device([torch.ones(SIZE // 4)], "cuda", pin=True)
    (copy,) = taken()
    assert copy.pageable_copies == 0


def test_pinned_copies_never_wait(spin):
    batch = {"x": host(MIB, pinned=True), "y": [host(MIB, pinned=True)]}
    with no_waiting():
        began = perf_counter()
        for _ in range(20):
            to_device(batch, "cuda")
            spin(0.010)
            this_thread.copies.take()
        took_s = perf_counter() - began
    assert took_s < 0.1, "200 ms of kernels were queued"


def test_a_copy_that_is_captured_is_part_of_the_graph():
    source, graph = host(MIB, pinned=True), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        moved = to_device(source, "cuda")
    assert taken() == []
    source.fill_(7)
    graph.replay()
    torch.cuda.synchronize()
    assert int(moved[0]) == 7
