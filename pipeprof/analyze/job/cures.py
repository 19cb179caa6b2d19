"""Say what a job would gain if some of its ranks loaded as fast as the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeprof.analyze.job.rank_steps import RankSteps
from pipeprof.analyze.job.steps import JobSteps
from pipeprof.model import Cure

_MOST = 10
"""Most ranks, and most hosts, whose cure is tried: those with most of the job's stall."""


def cures(steps: JobSteps, ranks: Sequence[RankSteps]) -> Iterator[Cure]:
    """Yield what each cure would give. A rank, or the ranks of a host, wait no longer than the
    median of the others; no batch is later than the rank's median one; or data are free."""
    stall_s = np.bincount(steps.last, weights=steps.stall_s, minlength=len(ranks))
    for place in _largest(stall_s):
        if (gain := _gain_of(steps, [place])) > 0:
            yield Cure("rank", str(ranks[place].rank), gain)
    hosts: dict[str, list[int]] = {}
    for place, rank in enumerate(ranks):
        hosts.setdefault(rank.host or "", []).append(place)
    names = [host for host, members in hosts.items() if 1 < len(members) < len(ranks)]
    for place in _largest(np.array([stall_s[hosts[host]].sum() for host in names])):
        if (gain := _gain_of(steps, hosts[names[place]])) > 0:
            yield Cure("host", names[place], gain)
    stalls_s = steps.stalls_s
    usual_s = np.minimum(stalls_s, np.median(stalls_s, axis=1, keepdims=True))
    yield Cure("tails", "", steps.gain_with(usual_s, steps.pace_s))
    yield Cure("loading", "", steps.gain_with(np.zeros_like(stalls_s), np.zeros(len(ranks))))


def _largest(values: npt.NDArray[Any]) -> list[int]:
    """Return where the largest of the positive ``values`` are."""
    order: list[int] = np.argsort(-values, kind="stable")[:_MOST].tolist()
    return [place for place in order if values[place] > 0]


def _gain_of(steps: JobSteps, cured: Sequence[int]) -> float:
    """Return the gain if the ``cured`` ranks waited no longer than the others do."""
    others = np.delete(np.arange(len(steps.stalls_s)), cured)
    stalls_s, pace_s = steps.stalls_s.copy(), steps.pace_s.copy()
    stalls_s[cured] = np.minimum(stalls_s[cured], np.median(stalls_s[others], axis=0))
    pace_s[cured] = np.minimum(pace_s[cured], np.median(pace_s[others]))
    return steps.gain_with(stalls_s, pace_s)
