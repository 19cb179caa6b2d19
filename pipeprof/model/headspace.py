"""Define the result of `pipeprof.headspace`: how much faster training is when data cost nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Headspace:
    """A training step fed by its loader, compared with one fed by real batches held in memory."""

    samples_per_s: float
    """Rate with the loader, after the prefetched batches are used up."""
    interval: tuple[float, float]
    """95 % interval of ``samples_per_s``."""
    free_samples_per_s: float
    """Rate with the batches in memory."""
    free_interval: tuple[float, float]
    """95 % interval of ``free_samples_per_s``."""
    gain: float
    """Rate from memory divided by the rate with the loader: 1.0 means nothing to gain."""
    gain_interval: tuple[float, float]
    """Range of the gain while both rates lie within their intervals: wider than 95 %."""
    batches: int
    """Batches measured with the loader."""
    free_batches: int
    """Batches measured from memory."""
    kept_batches: int
    """Distinct batches held in memory and replayed in a cycle."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        low, high = self.gain_interval
        return (
            f"If data were free: {self.gain:.2f}× ({low:.2f}–{high:.2f}), "
            f"{self.free_samples_per_s:,.0f} instead of {self.samples_per_s:,.0f} samples/s, "
            f"measured on {self.free_batches:,} batches from memory and {self.batches:,} loaded."
        )
