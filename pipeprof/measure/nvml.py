"""What the driver says of the GPU: utilisation and memory, as a trend beside the exact figures.

NVML's utilisation is the share of a past window of 1/6 to 1 s in which at least one kernel ran,
of whatever process. It shows a trend over a run; it cannot tell one step from another, and a
single tiny kernel at a time counts as full use. It comes with ``pip install pipeprof[gpu]``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.clock import Clock, SystemClock

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CudaDevice:
    """As this process counts its devices."""

    index: int
    uuid: str | None
    """Without a prefix; ``None``: torch does not tell."""


@dataclass(frozen=True)
class DeviceSample:
    at_s: float
    """On the monotonic clock of the run."""
    device: int
    """CUDA's index, in this process."""
    utilisation: float | None
    """Share of the driver's last window, of all processes; ``None``: not told, as on a slice of a
    GPU (MIG)."""
    memory_used_bytes: int
    """Of all processes."""
    memory_total_bytes: int


def current_device() -> CudaDevice | None:
    """``None`` unless this process uses CUDA already, which is never initialised here."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    index = cuda.current_device()
    uuid = getattr(cuda.get_device_properties(index), "uuid", None)
    return CudaDevice(index, None if uuid is None else str(uuid))


class Nvml:
    """Asks at most every ``every_s`` seconds, and only when told to: it has no thread. No error
    leaves it: after one it has stopped for good, and ``reason`` says why."""

    def __init__(
        self,
        every_s: float = 0.5,
        clock: Clock | None = None,
        library: Any | None = None,
        device: Callable[[], CudaDevice | None] = current_device,
    ) -> None:
        """``library``: the module ``pynvml`` unless given."""
        self._every_s = every_s
        self._clock = clock or SystemClock()
        self._library = library
        self._device = device
        self._next_s = self._clock.now()
        self._handles: dict[int, Any] = {}
        self._started = False
        self.reason: str | None = None
        """Why it has stopped."""

    def sample(self) -> DeviceSample | None:
        """Of the current CUDA device; ``None`` when it is too early for another, CUDA is not in
        use, or the driver does not tell."""
        now = self._clock.now()
        if self.reason is not None or now < self._next_s:
            return None
        self._next_s = now + self._every_s
        try:
            device = self._device()
            return None if device is None else self._read(device, now)
        except ImportError:
            self.reason = "nvidia-ml-py is not installed: pip install 'pipeprof[gpu]'"
        except Exception as error:
            log_caught(_log, error, "no more samples of the GPU's use")
            self.reason = f"the driver does not tell: {error}".splitlines()[0]
        return None

    def close(self) -> None:
        """Let go of the driver."""
        self.reason = self.reason or "closed"
        if self._started and self._library is not None:
            self._started = False
            with suppress_and_log(_log, "the GPU's driver was not let go"):
                self._library.nvmlShutdown()

    def _read(self, device: CudaDevice, now: float) -> DeviceSample:
        library = self._library = self._library or import_module("pynvml")
        if not self._started:
            library.nvmlInit()
            self._started = True
        if device.index not in self._handles:
            self._handles[device.index] = _handle(library, device)
        handle = self._handles[device.index]
        memory = library.nvmlDeviceGetMemoryInfo(handle)
        try:
            utilisation = library.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        except library.NVMLError:
            utilisation = None
        return DeviceSample(now, device.index, utilisation, memory.used, memory.total)


def _handle(library: Any, device: CudaDevice) -> Any:
    """NVML's own. It counts all devices of the machine, in another order than CUDA may."""
    if device.uuid is None:
        return _visible_handle(library, device.index)
    try:
        return library.nvmlDeviceGetHandleByUUID(f"GPU-{device.uuid}")
    except library.NVMLError:
        return library.nvmlDeviceGetHandleByUUID(f"MIG-{device.uuid}")


def _visible_handle(library: Any, index: int) -> Any:
    """By what the environment says is visible, for a torch that tells no UUID."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    name = visible.split(",")[index].strip() if visible else str(index)
    if name.startswith(("GPU-", "MIG-")):
        return library.nvmlDeviceGetHandleByUUID(name)
    return library.nvmlDeviceGetHandleByIndex(int(name))
