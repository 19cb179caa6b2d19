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
from typing import Any, NamedTuple

from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CudaDevice:
    """As this process counts its devices."""

    index: int
    uuid: str | None
    """Without a prefix; ``None``: torch does not tell, as before 2.5."""


class DeviceSample(NamedTuple):
    """Of all processes that use the device."""

    utilisation: float | None
    """Share of the driver's last window; ``None``: not told, as on a slice of a GPU (MIG)."""
    memory_bytes: int


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
    leaves it: after one it has stopped for good."""

    def __init__(
        self,
        every_s: float = 0.5,
        clock: Clock = SYSTEM_CLOCK,
        library: Any | None = None,
        device: Callable[[], CudaDevice | None] = current_device,
    ) -> None:
        """``library``: the module ``pynvml`` unless given."""
        self._every_s = every_s
        self._now = clock.now
        self._library = library
        self._device = device
        self._next_s = self._now()
        self._handles: dict[int, Any] = {}
        self._stopped = False

    def sample(self) -> DeviceSample | None:
        """Of the current CUDA device; ``None`` when it is too early for another, CUDA is not in
        use, or the driver does not tell."""
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
            library.nvmlInit()  # NVML counts these; it is let go when the process ends
            self._handles[device.index] = _handle(library, device)
        handle = self._handles[device.index]
        try:
            utilisation = library.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        except library.NVMLError:
            utilisation = None
        return DeviceSample(utilisation, library.nvmlDeviceGetMemoryInfo(handle).used)


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
