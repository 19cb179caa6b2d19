"""A CUDA of known truth: streams that work off what they are given, on a clock that stands still
until told. It takes the place of the module ``torch.cuda``, and waits for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeprof.measure.clock import Clock, FakeClock


class FakeStream:
    def __init__(self, clock: Clock, device_index: int = 0) -> None:
        self.device_index = device_index
        self.cuda_stream = id(self)
        self.idle_s = 0.0
        """Without work so far, up to the last launch."""
        self._clock = clock
        self._drained_s = clock.now()

    def launch(self, seconds: float) -> None:
        """Queue a kernel."""
        self.idle_s += max(0.0, self._clock.now() - self._drained_s)
        self._drained_s = self.reached_s() + seconds

    def wait_stream(self, other: FakeStream) -> None:
        self._drained_s = max(self._drained_s, other._drained_s)

    def reached_s(self) -> float:
        """When something recorded now is reached."""
        return max(self._drained_s, self._clock.now())


class FakeEvent:
    def __init__(self, cuda: FakeCuda) -> None:
        self.at_s = 0.0
        self._cuda = cuda
        self._device: int | None = None

    def record(self, stream: FakeStream) -> None:
        assert self._device in (None, stream.device_index), "an event stays on its device"
        self._device = stream.device_index
        self.at_s = stream.reached_s()

    def query(self) -> bool:
        self._cuda.queries += 1
        return self._reached()

    def _reached(self) -> bool:
        return self.at_s <= self._cuda.clock.now()

    def elapsed_time(self, end: FakeEvent) -> float:
        assert self._device == end._device
        assert self._reached()
        assert end._reached()
        return (end.at_s - self.at_s) * 1000


class FakeCuda:
    def __init__(self, clock: Clock | None = None) -> None:
        """On `SYSTEM_CLOCK` the kernels take real time, without using a core."""
        self.clock: Any = clock or FakeClock()
        self.stream = FakeStream(self.clock)
        """The current one."""
        self.capturing = False
        self.failure: Exception | None = None
        """Raised by whatever is asked next, and ever after."""
        self.events_made = 0
        self.asked = 0
        """How often it was asked for anything."""
        self.queries = 0
        """How often an event was asked whether it is reached."""

    def is_current_stream_capturing(self) -> bool:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return self.capturing

    def current_stream(self, device: object = None) -> FakeStream:
        return self.stream

    @contextmanager
    def use(self, stream: FakeStream) -> Iterator[None]:
        """As ``torch.cuda.stream``."""
        before, self.stream = self.stream, stream
        yield
        self.stream = before

    def Event(self, enable_timing: bool) -> FakeEvent:  # noqa: N802
        assert enable_timing
        self.events_made += 1
        return FakeEvent(self)
