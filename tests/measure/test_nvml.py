"""The driver's word on the GPU: bounded in rate, of the right device, no reason to fail."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipeprof.measure.clock import FakeClock
from pipeprof.measure.nvml import CudaDevice, DeviceSample, Nvml, current_device


class FakeNvml:
    """Two GPUs, as the module ``pynvml`` shows them."""

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.handles = {"GPU-aaa": "first", "GPU-bbb": "second", 0: "first", 1: "second"}
        self.utilisation: float | None = 75
        self.calls: list[str] = []

    def nvmlInit(self) -> None:  # noqa: N802
        self.calls.append("init")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return self._handle(uuid)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return self._handle(index)

    def _handle(self, key: str | int) -> str:
        self.calls.append(f"handle {key}")
        if key not in self.handles:
            raise self.NVMLError("Not Found")
        return self.handles[key]

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used={"first": 100, "second": 200}.get(handle, 7), total=1000)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:  # noqa: N802
        if self.utilisation is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=self.utilisation, memory=1)


def nvml(library, device: CudaDevice | None, clock: FakeClock | None = None) -> Nvml:
    return Nvml(clock=clock or FakeClock(), library=library, device=lambda: device)


def test_a_sample_is_of_the_device_in_use():
    sample = nvml(FakeNvml(), CudaDevice(0, "bbb")).sample()
    assert sample == DeviceSample(utilisation=0.75, memory_bytes=200)


def test_the_rate_is_bounded():
    clock, library = FakeClock(), FakeNvml()
    sampler = nvml(library, CudaDevice(0, "aaa"), clock)
    taken = 0
    for _ in range(1000):
        taken += sampler.sample() is not None
        clock.sleep(0.01)
    assert taken == 20, "two a second"
    assert library.calls == ["init", "handle GPU-aaa"]


@pytest.mark.parametrize(
    ("visible", "index", "used"),
    [
        (None, 1, 200),
        ("1,0", 0, 200),
        ("1, 0", 1, 100),
        ("GPU-bbb", 0, 200),
    ],
)
def test_without_an_uuid_the_environment_tells_which(visible, index, used, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    sample = nvml(FakeNvml(), CudaDevice(index, None)).sample()
    assert sample is not None
    assert sample.memory_bytes == used


def test_a_slice_of_a_gpu_tells_its_memory_and_no_utilisation():
    library = FakeNvml()
    library.handles = {"MIG-ccc": "slice"}
    library.utilisation = None
    sample = nvml(library, CudaDevice(0, "ccc")).sample()
    assert sample is not None
    assert (sample.utilisation, sample.memory_bytes) == (None, 7)


def test_before_cuda_is_in_use_there_is_nothing_to_tell_yet():
    library, clock = FakeNvml(), FakeClock()
    sampler = nvml(library, None, clock)
    assert (sampler.sample(), library.calls) == (None, [])


def test_a_driver_that_refuses_is_asked_once():
    library, clock = FakeNvml(), FakeClock()
    sampler = nvml(library, CudaDevice(0, "zzz"), clock)
    for _ in range(3):
        assert sampler.sample() is None
        clock.sleep(1.0)
    assert library.calls == ["init", "handle GPU-zzz", "handle MIG-zzz"]


def test_without_the_library_the_log_says_how_to_get_it(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with caplog.at_level("DEBUG", logger="pipeprof"):
        assert nvml(None, CudaDevice(0, "aaa")).sample() is None
    assert "pip install 'pipeprof[gpu]'" in caplog.text


def test_the_current_device_is_torchs_once_cuda_is_in_use(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert current_device() is None
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    for properties, uuid in ((SimpleNamespace(uuid="abc"), "abc"), (SimpleNamespace(), None)):
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _, found=properties: found)
        assert current_device() == CudaDevice(3, uuid)
