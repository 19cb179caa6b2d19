"""List accelerators with the memory and peak arithmetic rate that their vendors state.

Source: Training Infrastructure notes and ML Engineering's tables; dense FP16 or BF16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Accelerator:
    """One model of accelerator."""

    memory: tuple[float, ...]
    """Bytes of each variant that is sold; empty where unknown."""
    peak_flop_per_s: float
    """FLOP/s in 16 bits, dense."""


ACCELERATORS: Final = {
    "v100": Accelerator((16e9, 32e9), 125e12),
    "a100": Accelerator((40e9, 80e9), 312e12),
    "h100": Accelerator((80e9,), 989e12),
    "h200": Accelerator((141e9,), 989e12),
    "b200": Accelerator((), 2250e12),
}
