"""What a profile says is wrong, what to change, and what each change is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A named pathology, seen in this run."""

    code: str
    """Stable, e.g. ``few-splits``."""
    title: str
    evidence: str
    """Numbers of this run."""
    fix: str
    """In terms of what the user has set now."""


@dataclass(frozen=True)
class Cost:
    """What a change takes of the machine beyond what the run took. ``None``: unknown."""

    cores: float | None = None
    """Busy on average."""
    ram_bytes: float | None = None
    """The workers' own memory, and batches under way."""
    shared_memory_bytes: float | None = None
    """The part of it that is batches under way."""


@dataclass(frozen=True)
class Recommendation:
    """One change of settings, with what it brings and how that is known."""

    setting: str
    """What to change, e.g. ``num_workers``; several are joined by `` + ``."""
    current: str
    proposed: str
    why: str
    predicted_samples_per_s: float | None = None
    interval: tuple[float, float] | None = None
    """Of the verified figure 95 %, else of the predicted one 90 %. Where nothing is predicted: what
    the run leaves open lies in it."""
    verified_samples_per_s: float | None = None
    """Measured by running the proposal."""
    code: str | None = None
    """To paste."""
    predicted_starved: float | None = None
    """The starved fraction to expect, 0..1."""
    predicted_starved_interval: tuple[float, float] | None = None
    """90 %."""
    cost: Cost | None = None
    settle: str | None = None
    """The one short run that would tell what this one leaves open; ``None``: nothing is."""


@dataclass(frozen=True)
class Speedup:
    """What a change brings, as a share of the present throughput: 0.18 is 18 % more samples/s."""

    share: float
    interval: tuple[float, float]
    """90 %, of a run with the change against one without it, on this machine."""


@dataclass(frozen=True)
class Worth:
    """What one cost of the run is worth: the gain if it were cut, by the simulator."""

    cheaper: Speedup
    """25 % cheaper."""
    free: Speedup
