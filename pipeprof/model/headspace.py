"""What there would be to gain if data were free."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Headspace:
    """A training step fed by its loader, and by real batches that lie in memory."""

    samples_per_s: float
    """By the loader, once what was prefetched is used up."""
    interval: tuple[float, float]
    """95 % of that."""
    free_samples_per_s: float
    """By the batches in memory."""
    free_interval: tuple[float, float]
    """95 % of that."""
    gain: float
    """Free over loaded: 1.0 is nothing to gain."""
    gain_interval: tuple[float, float]
    """Within which the gain lies while both rates lie in theirs: wider than 95 %."""
    batches: int
    """Measured by the loader."""
    free_batches: int
    """Measured from memory."""
    kept_batches: int
    """In memory, replayed in turn."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.gain_interval
        return (
            f"If data were free: {self.gain:.2f}× ({low:.2f}–{high:.2f}), "
            f"{self.free_samples_per_s:,.0f} instead of {self.samples_per_s:,.0f} samples/s, "
            f"measured on {self.free_batches:,} batches from memory and {self.batches:,} loaded."
        )
