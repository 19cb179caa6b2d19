"""Estimate what fetching a batch costs, from the batches of all settings that were run.

A slow batch is as slow with two workers as with one, and more batches show better how often a slow
one comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeprof.analyze.predict.workload import Demand, Measured
from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.intervals import fit_line, standard_error
from pipeprof.analyze.thresholds import EQUAL_WITHIN, MINOR_SHARE

_SIGNIFICANT = 4.0
"""Standard errors between two means, beyond which they do not differ by chance."""


@dataclass(frozen=True)
class BatchCosts:
    """The seconds to fetch and collate each of many batches. [batches]"""

    cpu_s: Floats
    """CPU time."""
    blocked_s: Floats
    """All other time."""
    pin_s: Floats
    """Time to pin the batch; 0 where memory is not pinned."""

    @classmethod
    def of(cls, runs: Sequence[Measured]) -> BatchCosts:
        """Return the costs of all batches of ``runs``."""
        cpu_s = np.concatenate([cpu_of(run.columns) for run in runs])
        made_s = np.concatenate([run.columns.made_s for run in runs])
        pin_s = np.concatenate([pinning_of(run) for run in runs])
        return cls(cpu_s, np.maximum(0.0, made_s - cpu_s), pin_s)

    def demands(self, transfer: Demand) -> tuple[Demand, ...]:
        """Return the demands of the batches, each transferred as ``transfer`` says.

        Workers may share what they wait for. The waits are therefore bytes of a link that gives
        each worker 1 byte a second.
        """
        return tuple(
            replace(transfer, link_bytes=float(blocked), cpu_s=float(cpu), pin_s=float(pin))
            for blocked, cpu, pin in zip(self.blocked_s, self.cpu_s, self.pin_s, strict=True)
        )

    def pooled_with(self, other: BatchCosts) -> BatchCosts:
        """Return these batches and those of ``other``, as they would have been in this setting.

        A difference of the medians is due to the settings, and not to the batches. So is a
        difference of the means beyond chance: on a shared storage some batches wait long, and most
        not at all.
        """
        made_s = float(np.median(self.cpu_s + self.blocked_s))
        return BatchCosts(
            _pooled(self.cpu_s, other.cpu_s, made_s),
            _pooled(self.blocked_s, other.blocked_s, made_s),
            np.concatenate([self.pin_s, other.pin_s]),
        )


def _pooled(own_s: Floats, other_s: Floats, made_s: float) -> Floats:
    """Return ``own_s`` and ``other_s`` in one array, the latter scaled to the level of the former
    where that is more than a minor share of ``made_s``."""
    level_s, other_level_s = float(np.median(own_s)), float(np.median(other_s))
    scale = 1.0
    if min(level_s, other_level_s) > MINOR_SHARE * made_s:
        scale = level_s / other_level_s
    if abs(scale - 1) <= EQUAL_WITHIN:
        scale = 1.0
    other_s = scale * other_s
    own_mean_s, other_mean_s = float(own_s.mean()), float(other_s.mean())
    error_s = float(np.hypot(standard_error(own_s), standard_error(other_s)))
    if other_mean_s and abs(other_mean_s - own_mean_s) > _SIGNIFICANT * error_s:
        other_s = own_mean_s / other_mean_s * other_s
    return np.concatenate([own_s, other_s])


def cpu_of(columns: Columns) -> Floats:
    """Estimate the CPU time of each batch, in seconds, from the batches in which it was sampled.

    A straight line over the fetch time gives a slow batch more CPU time only if slow batches were
    observed to use more.
    """
    made_s = columns.made_s
    sampled = ~np.isnan(columns.cpu_s) & ~np.isnan(made_s)
    if not sampled.any():
        return np.zeros(len(columns))
    cpu_s, sampled_made_s = columns.cpu_s[sampled], made_s[sampled]
    slope = min(1.0, max(0.0, fit_line(sampled_made_s, cpu_s)[0]))
    known_s = np.nan_to_num(made_s)
    expected_s: Floats = cpu_s.mean() + slope * (known_s - sampled_made_s.mean())
    return np.clip(expected_s, 0.0, known_s)


def pinning_of(run: Measured) -> Floats:
    """Return the seconds that pinning each batch took; the mean where that is unknown, and 0 where
    memory is not pinned. [batches]"""
    pin_s = run.columns.pinned_s - run.columns.arrived_s
    known = ~np.isnan(pin_s)
    if not run.setting.pin_memory or not known.any():
        return np.zeros(len(run.columns))
    return np.where(known, pin_s, pin_s[known].mean())
