"""Kernels of about known length, and a ban on waiting for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

Spin = Callable[[float], None]
"""Queues a kernel of about so many seconds. Only about, as the clock of a GPU may change: a test
that needs the truth times its kernels."""


def calibrated() -> Spin:
    cycles = 1_000_000
    for _ in range(100):  # until the GPU's clock is up
        torch.cuda._sleep(cycles)
    per_s = 20 * cycles / timed_s(lambda: [torch.cuda._sleep(cycles) for _ in range(20)])
    return lambda seconds: torch.cuda._sleep(int(seconds * per_s))


def timed_s(work: Callable[[], Any]) -> float:
    """What ``work`` takes on the current stream; waits for it."""
    start, end = timing_event(), timing_event()
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


def timing_event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Whatever waits for the device is an error: torch's calls for that, and those operations of
    which torch knows that they wait."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("waited for the device")

    torch.cuda.synchronize()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "a prototype feature"
        for home in (torch.cuda, torch.cuda.Event, torch.cuda.Stream):
            patch.setattr(home, "synchronize", refuse)
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
