"""Sample the GPU's utilisation and memory from its driver, as a trend over a run.

NVML's utilisation is the share of a past window of 1/6 to 1 s in which at least one kernel of any
process ran. It cannot distinguish steps, and one tiny kernel at a time counts as full use. It needs
``pip install pipeprof[gpu]``.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CudaDevice:
    """A device as this process numbers it."""

    index: int
    uuid: str | None
    """The UUID without a prefix; ``None`` with torch before 2.5, which has none."""


class DeviceSample(NamedTuple):
    """The use of a device by all processes together."""

    utilisation: float | None
    """Share of the driver's last window; ``None`` on a slice of a GPU (MIG), which has none."""
    memory_bytes: int


def current_device() -> CudaDevice | None:
    """Return the current device, or ``None`` unless this process uses CUDA already. CUDA is never
    initialised here."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    index = cuda.current_device()
    uuid = getattr(cuda.get_device_properties(index), "uuid", None)
    return CudaDevice(index, None if uuid is None else str(uuid))


class Nvml:
    """Samples the driver when it is called, at most every ``every_s`` seconds, without a thread. It
    raises nothing: after an error it has stopped for good."""

    def __init__(
        self,
        every_s: float = 0.5,
        clock: Clock = SYSTEM_CLOCK,
        library: Any | None = None,
        device: Callable[[], CudaDevice | None] = current_device,
    ) -> None:
        """Use the module ``pynvml`` unless another ``library`` is given."""
        self._every_s = every_s
        self._now = clock.now
        self._library = library
        self._device = device
        self._next_s = self._now()
        self._handles: dict[int, Any] = {}
        self._stopped = False

    def sample(self) -> DeviceSample | None:
        """Sample the current CUDA device. Returns ``None`` when it is too early for another sample,
        CUDA is not in use, or the driver gives no answer."""
        now = self._now()
        if self._stopped or now < self._next_s:
            return None
        self._next_s = now + self._every_s
        try:
            device = self._device()
            return None if device is None else self._read(device)
        except Exception as error:
            log_caught(_log, error, "no samples of the GPU's use: pip install 'pipeprof[gpu]'")
            self._stopped = True
        return None

    def _read(self, device: CudaDevice) -> DeviceSample:
        library = self._library = self._library or import_module("pynvml")
        if device.index not in self._handles:
            library.nvmlInit()  # it is released when the process ends
            self._handles[device.index] = _handle(library, device)
        handle = self._handles[device.index]
        try:
            utilisation = library.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        except library.NVMLError:
            utilisation = None
        return DeviceSample(utilisation, library.nvmlDeviceGetMemoryInfo(handle).used)


def _handle(library: Any, device: CudaDevice) -> Any:
    """Return NVML's handle. NVML numbers all devices of the machine, maybe unlike CUDA."""
    if device.uuid is None:
        return _visible_handle(library, device.index)
    try:
        return library.nvmlDeviceGetHandleByUUID(f"GPU-{device.uuid}")
    except library.NVMLError:
        return library.nvmlDeviceGetHandleByUUID(f"MIG-{device.uuid}")


def _visible_handle(library: Any, index: int) -> Any:
    """Return the handle by the environment's visible devices, for a torch without UUIDs."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    name = visible.split(",")[index].strip() if visible else str(index)
    if name.startswith(("GPU-", "MIG-")):
        return library.nvmlDeviceGetHandleByUUID(name)
    return library.nvmlDeviceGetHandleByIndex(int(name))
