"""Accelerators, as their makers tell: memory and peak arithmetic.

Source: Training Infrastructure notes and ML Engineering's tables; dense FP16 or BF16.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeprof.errors import UsageError
from pipeprof.sizing.quantities import Bytes, FlopPerS


@dataclass(frozen=True)
class Accelerator:
    name: str
    memory: tuple[Bytes, ...]
    """Sizes in which it is sold; none: not known here."""
    peak_flop_per_s: FlopPerS
    """In 16 bits, dense."""


ACCELERATORS = (
    Accelerator("v100", (16e9, 32e9), 125e12),
    Accelerator("a100", (40e9, 80e9), 312e12),
    Accelerator("h100", (80e9,), 989e12),
    Accelerator("h200", (141e9,), 989e12),
    Accelerator("b200", (), 2250e12),
)


def find_accelerator(name: str) -> Accelerator | None:
    return next((each for each in ACCELERATORS if each.name == name), None)


def known_accelerators(more: frozenset[str]) -> str:
    """For a message; ``more`` are those that only workloads know."""
    return ", ".join(sorted({each.name for each in ACCELERATORS} | more))


def check_accelerator(name: str, more: frozenset[str]) -> None:
    """Raises `UsageError`."""
    if find_accelerator(name) is None and name not in more:
        raise UsageError(f"{name!r} is no known accelerator; known are {known_accelerators(more)}")
