"""Define findings and recommendations: what is wrong, what to change, and what a change is
worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A named problem that this run shows."""

    code: str
    """Stable identifier, e.g. ``few-splits``."""
    title: str
    evidence: str
    """The numbers of this run that show the problem."""
    fix: str
    """What to change, in terms of the current settings."""


@dataclass(frozen=True)
class Cost:
    """What a change needs of the machine beyond what the run used. ``None`` means unknown."""

    cores: float | None = None
    """Additional cores that are busy on average."""
    ram_bytes: float | None = None
    """Memory of the workers themselves and of prefetched batches."""
    shared_memory_bytes: float | None = None
    """The part of ``ram_bytes`` that holds prefetched batches in shared memory."""


@dataclass(frozen=True)
class Recommendation:
    """One change of settings, what it brings, and how that is known."""

    setting: str
    """The setting to change, e.g. ``num_workers``; several are joined by `` + ``."""
    current: str
    proposed: str
    why: str
    predicted_samples_per_s: float | None = None
    interval: tuple[float, float] | None = None
    """95 % interval of the verified rate, else 90 % interval of the predicted one. Where nothing is
    predicted: the range that this run leaves open."""
    verified_samples_per_s: float | None = None
    """The rate measured by running the proposed setting."""
    code: str | None = None
    """Code to paste."""
    predicted_starved: float | None = None
    """Expected starved fraction, 0..1."""
    predicted_starved_interval: tuple[float, float] | None = None
    """90 % interval of ``predicted_starved``."""
    predicted_epoch_saving: float | None = None
    """Share of the time of an epoch, 0..1, that it saves outside of batches, which come as fast as
    before; ``None`` where it is unknown or does not apply."""
    cost: Cost | None = None
    settle: str | None = None
    """The one short run that would answer what this run leaves open; ``None``: nothing is open."""


@dataclass(frozen=True)
class Speedup:
    """What a change brings, as a share of the present throughput: 0.18 means 18 % more
    samples/s."""

    share: float
    interval: tuple[float, float]
    """90 % interval for a run with the change against one without it, on this machine."""


@dataclass(frozen=True)
class Worth:
    """The simulated gain from reducing one cost of the run."""

    cheaper: Speedup
    """The gain if this cost were 25 % lower."""
    free: Speedup
    """The gain if this cost were zero."""
