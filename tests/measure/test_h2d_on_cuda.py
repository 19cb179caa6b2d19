"""`to_device` on streams and events of a fake CUDA, of which the truth is known."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pipeprof.loaders.tensors import Ragged
from pipeprof.measure import h2d
from pipeprof.measure.copies import CopyNotes, this_thread
from pipeprof.measure.device import CudaEvents
from pipeprof.measure.h2d import to_device
from tests.measure.fake_cuda import FakeCuda, FakeStream
from tests.measure.leaves import Graph, tensor

MS = 1e-3


class OnFakeCuda:
    """`to_device` with streams and events of known truth: each copied tensor takes 3 ms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int = 1024) -> None:
        self.cuda = FakeCuda()
        self.notes = CopyNotes(CudaEvents(self.cuda), most)
        monkeypatch.setattr(this_thread, "copies", self.notes)
        monkeypatch.setattr(h2d, "_copy_stream", lambda _, side: side or self.cuda.stream)
        monkeypatch.setattr(torch.cuda, "current_stream", self.cuda.current_stream)
        monkeypatch.setattr(torch.cuda, "stream", self.cuda.use)
        to = h2d._Mover._to

        def timed_to(mover: Any, leaf: Any) -> Any:
            self.cuda.stream.launch(3 * MS)
            return to(mover, leaf)

        monkeypatch.setattr(h2d._Mover, "_to", timed_to)


def test_work_queued_before_a_copy_does_not_count(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    fake.cuda.stream.launch(100 * MS)
    to_device([tensor(2), tensor(2)], "meta")
    assert fake.notes.take() == [], "the device is not there yet"
    fake.cuda.clock.sleep(1.0)
    (copy,) = fake.notes.take()
    assert copy.seconds == pytest.approx(6 * MS)
    assert copy.bytes == 16


def test_a_side_stream_copies_beside_the_work_that_is_queued(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    fake.cuda.stream.launch(100 * MS)
    side: Any = FakeStream(fake.cuda.clock)
    side.device = torch.device("meta")
    to_device([tensor(2), Ragged(tensor(5), torch.tensor([0, 5]))], "meta", stream=side)
    fake.cuda.clock.sleep(6 * MS)
    (copy,) = fake.notes.take()
    assert copy.seconds == pytest.approx(6 * MS)
    assert copy.bytes == 8 + 20 + 16
    fake.cuda.clock.sleep(1.0)
    assert fake.cuda.stream.reached_s() == fake.cuda.clock.now()


def test_the_current_stream_waits_for_the_side_stream(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    side: Any = FakeStream(fake.cuda.clock)
    side.device = torch.device("meta")
    side.launch(50 * MS)
    to_device(tensor(2), "meta", stream=side)
    assert fake.cuda.stream.reached_s() == pytest.approx(53 * MS)


@pytest.mark.parametrize("item", [torch.zeros(2, device="meta"), Graph()])
def test_what_is_not_plainly_on_the_host_stays_on_the_current_stream(item, monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    side: Any = FakeStream(fake.cuda.clock)
    side.device = torch.device("meta")
    to_device({"host": tensor(1), "item": item}, "meta", stream=side)
    assert side.reached_s() == pytest.approx(3 * MS)
    assert fake.cuda.stream.reached_s() == pytest.approx(3 * MS), "at the same time"


def test_copies_are_told_in_order_as_they_end(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    for size in range(1, 6):
        to_device(tensor(size), "meta")
    told = []
    for _ in range(5):
        fake.cuda.clock.sleep(3 * MS)
        told.append([copy.bytes for copy in fake.notes.take()])
    assert told == [[4], [8], [12], [16], [20]]
    assert fake.cuda.events_made == 10
    to_device(tensor(1), "meta")
    assert fake.cuda.events_made == 10, "events are used again"


def test_copies_that_nobody_takes_cost_bounded_memory(monkeypatch):
    fake = OnFakeCuda(monkeypatch, most=5)
    for size in range(1, 21):
        to_device(tensor(size), "meta")
    fake.cuda.clock.sleep(1.0)
    assert [copy.bytes for copy in fake.notes.take()] == [64, 68, 72, 76, 80]
    assert fake.cuda.events_made <= 12


def test_an_error_of_the_driver_stops_the_notes_and_not_the_copies(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    to_device(tensor(1), "meta")
    fake.cuda.failure = RuntimeError("CUDA error: an illegal memory access\nmore")
    assert to_device(tensor(2), "meta").device.type == "meta"
    fake.cuda.failure = None
    fake.cuda.clock.sleep(1.0)
    assert fake.notes.take() == []


def test_an_error_while_taking_stops_the_notes_too(monkeypatch):
    fake = OnFakeCuda(monkeypatch)
    to_device(tensor(1), "meta")
    fake.cuda.failure = RuntimeError("gone")
    assert fake.notes.take() == []
    fake.cuda.failure = None
    assert fake.notes.take() == [], "it has stopped for good"
