"""Define how runs of a sweep differ: of one setting, of two that alternate, of two data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RunNoise:
    """How much runs of one setting differ on this machine, from a trial that was repeated at the
    end."""

    trial: int
    """Index into ``trials`` of the trial that was repeated."""
    first_samples_per_s: float
    """Rate of the original trial."""
    samples_per_s: float
    """Rate of the repetition."""
    sd: float = 0.0
    """Relative standard deviation between runs of one setting, from this repetition and the drift
    within trials."""
    degrees: int = 0
    """Degrees of freedom of ``sd``."""
    half_width: float = 0.0
    """95 % bound on the logarithm of the ratio of two runs of one setting."""
    apart: float | None = None
    """Logarithm of the ratio of the best two settings, at least that of 3 %. ``None``: there is
    only one setting."""
    settled: bool = True
    """Whether single runs can distinguish these two: ``half_width`` is at most ``apart``."""
    needed_trial_s: float | None = None
    """Measured seconds per trial that would distinguish them. ``None``: they are ``settled``, or
    longer trials would not help."""


@dataclass(frozen=True)
class PairedRuns:
    """Two settings of one data set, run alternately so that other load on the machine affects both
    alike."""

    trial: int
    """Index into ``trials`` of the setting that single trials recommend."""
    against: int
    """Index into ``trials`` of the fastest other setting that may be as good."""
    samples_per_s: tuple[tuple[float, float], ...]
    """For each pair, the rates with the settings of ``trial`` and of ``against``."""
    speed: float
    """The first rate as a multiple of the second."""
    speed_interval: tuple[float, float]
    """95 % interval of ``speed``."""
    difference: Literal["faster", "slower", "none"]
    """*none* when the interval contains 1, or the speed is within 3 % of it."""


@dataclass(frozen=True)
class Multiple:
    """A data set compared with the first one of its sweep, each at its best setting."""

    speed: float
    """Its samples/s as a multiple of those of the first data set."""
    interval: tuple[float, float]
    """95 % interval of ``speed``, which contains how much runs of one setting differ."""
    difference: Literal["faster", "slower", "none"]
    """*none* when the interval contains 1, or the speed is within 3 % of it."""
    cpu: float | None
    """CPU time to fetch a sample, as a multiple of the first data set's."""
