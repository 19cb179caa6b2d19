"""What fetching a batch costs, from all batches of all settings that were run: a slow batch is as
slow with two workers as with one, and more batches show better how often a slow one comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeprof.analyze.predict.workload import Demand, Measured
from pipeprof.analyze.profile.batch_table import Columns, Floats
from pipeprof.analyze.profile.intervals import line, standard_error

_SAME = 0.05
"""Levels that differ by less, relatively, count as equal."""
_MATTERS = 0.1
"""Share of the fetch time below which a cost has no level of its own."""
_SURE = 4.0
"""Standard errors by which means must differ that are not equal by chance."""


@dataclass(frozen=True)
class BatchCosts:
    """What it takes to fetch and collate each of many batches. [batches], seconds."""

    cpu_s: Floats
    """CPU time."""
    blocked_s: Floats
    """All other time."""

    @classmethod
    def of(cls, runs: Sequence[Measured]) -> BatchCosts:
        cpu_s = np.concatenate([cpu_of(run.columns) for run in runs])
        made_s = np.concatenate([run.columns.made_s for run in runs])
        return cls(cpu_s, np.maximum(0.0, made_s - cpu_s))

    def demands(self, transfer: Demand) -> tuple[Demand, ...]:
        """What batches ask for that are handed over as ``transfer`` says. What a worker waits for
        may be shared: bytes of a link that gives each worker 1 a second."""
        return tuple(
            replace(transfer, link_bytes=float(blocked), cpu_s=float(cpu))
            for blocked, cpu in zip(self.blocked_s, self.cpu_s, strict=True)
        )

    def and_of(self, other: BatchCosts) -> BatchCosts:
        """These batches and those of ``other``, as they would have been in this setting.

        What the medians of the two groups differ by is due to their settings, and not to the
        batches. So is what their means differ by beyond chance: where a storage is shared, some
        batches wait long, and most not at all."""
        made_s = float(np.median(self.cpu_s + self.blocked_s))
        return BatchCosts(
            _joined(self.cpu_s, other.cpu_s, made_s),
            _joined(self.blocked_s, other.blocked_s, made_s),
        )


def _joined(own_s: Floats, other_s: Floats, made_s: float) -> Floats:
    level_s, other_level_s = float(np.median(own_s)), float(np.median(other_s))
    times = 1.0
    if min(level_s, other_level_s) > _MATTERS * made_s:
        times = level_s / other_level_s
    if abs(times - 1) <= _SAME:
        times = 1.0
    other_s = times * other_s
    own_mean_s, other_mean_s = float(own_s.mean()), float(other_s.mean())
    error_s = float(np.hypot(standard_error(own_s), standard_error(other_s)))
    if other_mean_s and abs(other_mean_s - own_mean_s) > _SURE * error_s:
        other_s = own_mean_s / other_mean_s * other_s
    return np.concatenate([own_s, other_s])


def cpu_of(columns: Columns) -> Floats:
    """CPU time of each batch, estimated from those that were sampled: a straight line over the
    fetch time, so that a slow batch computes more only if slow ones were found to do so."""
    made_s = columns.made_s
    seen = ~np.isnan(columns.cpu_s) & ~np.isnan(made_s)
    if not seen.any():
        return np.zeros(len(columns))
    cpu_s, of_s = columns.cpu_s[seen], made_s[seen]
    slope = min(1.0, max(0.0, line(of_s, cpu_s)[0]))
    known_s = np.nan_to_num(made_s)
    expected_s: Floats = cpu_s.mean() + slope * (known_s - of_s.mean())
    return np.clip(expected_s, 0.0, known_s)
