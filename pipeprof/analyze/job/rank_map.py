"""Fold the ranks and the steps of a job into a map of a few rows: who held it up, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeprof.analyze.job.rank_steps import RankSteps
from pipeprof.analyze.job.steps import JobSteps
from pipeprof.model import RankMap, RankRow

_MOST_PARTS = 48
_MOST_ROWS = 64
_MOST_RANKS = 32
"""Most ranks with a row each. Those of a host share one in a larger job."""


def rank_map(steps: JobSteps, ranks: Sequence[RankSteps]) -> RankMap:
    """Return the map of ``ranks``, which are in order, and their common ``steps``."""
    count = len(steps.last)
    parts = min(_MOST_PARTS, count)
    part_of = np.arange(count) * parts // count
    groups = _groups(ranks)
    row_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    late_s = np.zeros((len(groups), parts))
    np.add.at(late_s, (row_of[steps.last], part_of), steps.stall_s)
    durations_s = np.bincount(part_of, weights=steps.cycles_s, minlength=parts)
    return RankMap(
        tuple(durations_s.tolist()),
        tuple(
            RankRow(_name(group), len(group), tuple(row.tolist()))
            for group, row in zip(groups, late_s, strict=True)
        ),
    )


def _groups(ranks: Sequence[RankSteps]) -> list[list[RankSteps]]:
    """Return consecutive ranks that share a row: one each, those of a host, or of several."""
    groups = [[rank] for rank in ranks]
    if len(ranks) > _MOST_RANKS:
        groups = []
        for rank in ranks:
            if groups and rank.host is not None and groups[-1][0].host == rank.host:
                groups[-1].append(rank)
            else:
                groups.append([rank])
    joined = -(-len(groups) // _MOST_ROWS)
    return [
        [rank for group in groups[first : first + joined] for rank in group]
        for first in range(0, len(groups), joined)
    ]


def _name(group: Sequence[RankSteps]) -> str:
    first, last = group[0], group[-1]
    if len(group) == 1:
        return f"rank {first.rank}"
    if first.host is None:
        return f"ranks {first.rank}–{last.rank}"
    return first.host if first.host == last.host else f"{first.host} – {last.host}"
