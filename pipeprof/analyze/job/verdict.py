"""Say what holds a job up: which rank's batches, which host's, or whoever's happen to be late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeprof.analyze.job.cures import cures
from pipeprof.analyze.job.rank_map import rank_map
from pipeprof.analyze.job.rank_steps import RankSteps
from pipeprof.analyze.job.shared_cores import sharing
from pipeprof.analyze.job.steps import JobSteps, Times
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.wording.job import job_headline, job_notes
from pipeprof.model import Cure, JobRank, TrainingJob
from pipeprof.model.job import Straggling
from pipeprof.model.profile import Verdict

LEAST_STEPS = 20
"""Fewer common steps decide nothing."""
_MOST = 0.5
"""Share of the job's stall from which on one rank, or one host, is said to hold the job up."""
_NEXT = 0.5
"""Most of that share that the next rank, or host, may have. Two that alternate have half each."""
_PARTS = 3
"""Parts of the steps in each of which one rank, or one host, has to have most of the stall."""
_LEAST_OF_PART = 0.1
"""Share of the job's stall from which on a part counts."""
_WORTH = 0.5
"""Share of the gain from curing its host below which a rank is not named, but the host."""
_TOGETHER = 0.7
"""Share of the last rank's wait that the median rank waits too, from which on all are slow."""


def job_of(
    ranks: Sequence[RankSteps], notes: Sequence[str] = (), idle: Sequence[int] = ()
) -> TrainingJob:
    """Return the job of these ``ranks``, at least two, of the same loader.

    Args:
        ranks: One for each rank.
        notes: What the reader has to know of how they were found.
        idle: Further ranks, which loaded nothing.
    """
    steps = JobSteps.of(ranks)
    count = steps.stalls_s.shape[1]
    cycle_s = float(steps.cycles_s.mean()) if count else 0.0
    starved, interval = _starved(steps)
    verdict = _verdict(interval, count, ranks[0].threshold)
    charges = _charges(steps, ranks) if count else []
    job_ranks = _ranks(steps, ranks, charges) if count else ()
    hosts = host_shares(job_ranks)
    found_cures = sorted(cures(steps, ranks), key=lambda cure: -cure.gain) if count else []
    straggling = _straggling(steps, ranks, hosts) if verdict == "starved" else "none"
    if straggling == "rank" and _host_is_worth_more(job_ranks[0], hosts, found_cures):
        straggling = "host"
    found = {rank.rank for rank in ranks}
    world_size = max(len(found) + len(idle), *(rank.world_size or 0 for rank in ranks))
    job = TrainingJob(
        name=ranks[0].name,
        created=max(rank.created for rank in ranks),
        pipeprof=ranks[0].version,
        world_size=world_size,
        missing=tuple(sorted(set(range(world_size)) - found - set(idle))),
        idle=tuple(idle),
        steps=count,
        cycle_s=cycle_s,
        samples_per_s=sum(rank.samples for rank in ranks) / cycle_s if cycle_s else 0.0,
        verdict=verdict,
        starved_fraction=starved,
        starved_interval=interval,
        straggling=straggling,
        headline="",
        blame=_blame(charges) if count else {},
        ranks=job_ranks,
        map=rank_map(steps, ranks) if count else None,
        cures=tuple(found_cures),
        unjudged=next((rank.unjudged for rank in ranks if rank.unjudged), ""),
    )
    headline = job_headline(job, hosts)
    return replace(job, headline=headline, notes=(*notes, *job_notes(job, sharing(ranks))))


def _starved(steps: JobSteps) -> tuple[float, tuple[float, float]]:
    if not steps.stalls_s.size:
        return 0.0, (0.0, 1.0)
    stall_s, cycles_s = steps.stall_s, steps.cycles_s
    low, high = ratio_interval(stall_s, cycles_s)
    return float(stall_s.sum() / cycles_s.sum()), (max(0.0, low), min(1.0, high))


def _verdict(interval: tuple[float, float], steps: int, threshold: float) -> Verdict:
    low, high = interval
    if steps < LEAST_STEPS:
        return "inconclusive"
    return "starved" if low >= threshold else "fed" if high < threshold else "inconclusive"


def _charges(steps: JobSteps, ranks: Sequence[RankSteps]) -> list[dict[str, float]]:
    """Return cause → seconds of the job's stall in the steps in which a rank was last, for each."""
    return [
        rank.charged(steps.last == place, steps.rows[place]) for place, rank in enumerate(ranks)
    ]


def _ranks(
    steps: JobSteps, ranks: Sequence[RankSteps], charges: Sequence[Mapping[str, float]]
) -> tuple[JobRank, ...]:
    counts = np.bincount(steps.last, minlength=len(ranks))
    stall_s = np.bincount(steps.last, weights=steps.stall_s, minlength=len(ranks))
    total_s = float(stall_s.sum())
    every = [
        JobRank(
            rank=rank.rank,
            host=rank.host,
            file=rank.file,
            starved_fraction=rank.starved_fraction,
            last_share=float(counts[place] / len(steps.last)),
            stall_share=float(stall_s[place]) / total_s if total_s else 0.0,
            bottleneck=max(charged, key=charged.__getitem__, default=None)
            if stall_s[place] > 0
            else None,
        )
        for place, (rank, charged) in enumerate(zip(ranks, charges, strict=True))
    ]
    return tuple(sorted(every, key=lambda rank: (-rank.stall_share, rank.rank)))


def _blame(charges: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return cause → share of the job's stall, each step charged to what its last rank did."""
    sums: dict[str, float] = {}
    for charged in charges:
        for cause, seconds in charged.items():
            sums[cause] = sums.get(cause, 0.0) + seconds
    total_s = sum(sums.values())
    shares = {cause: seconds / total_s for cause, seconds in sums.items() if seconds > 0}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def host_shares(ranks: Sequence[JobRank]) -> dict[str, float]:
    """Return host → share of the job's stall, where all hosts are known and there are several."""
    hosts = [rank.host for rank in ranks]
    shares: dict[str, float] = {}
    for rank in ranks:
        if rank.host is not None:
            shares[rank.host] = shares.get(rank.host, 0.0) + rank.stall_share
    return shares if None not in hosts and len(shares) > 1 else {}


def _straggling(
    steps: JobSteps, ranks: Sequence[RankSteps], hosts: Mapping[str, float]
) -> Straggling:
    waits_s = np.percentile(steps.stalls_s, 50, axis=0, method="lower")
    if float(waits_s.sum()) >= _TOGETHER * float(steps.stall_s.sum()):
        return "all"
    if _stands_out(_stalls_of(steps, range(len(ranks)))):
        return "rank"
    places = {host: place for place, host in enumerate(hosts)}
    of_host = [places.get(rank.host or "", 0) for rank in ranks]
    return "host" if hosts and _stands_out(_stalls_of(steps, of_host)) else "turns"


def _host_is_worth_more(rank: JobRank, hosts: Mapping[str, float], found: Sequence[Cure]) -> bool:
    """Return whether a rank is last only because it is the slowest of its host, whose ranks are all
    slow: then its own cure gives little, and that of the host far more."""
    gains = {(cure.of, cure.name): cure.gain for cure in found}
    own, of_host = gains.get(("rank", str(rank.rank)), 0.0), gains.get(("host", rank.host or ""), 0)
    return hosts.get(rank.host or "", 0.0) >= _MOST and own < _WORTH * of_host


def _stalls_of(steps: JobSteps, groups: Sequence[int]) -> Times:
    """Return the job's stall by the group of the last rank, and by the part of the steps. [groups,
    parts], seconds"""
    stalls_s, count = np.zeros((max(groups) + 1, _PARTS)), len(steps.last)
    part = np.arange(count) * _PARTS // count
    np.add.at(stalls_s, (np.array(groups)[steps.last], part), steps.stall_s)
    return stalls_s


def _stands_out(stalls_s: Times) -> bool:
    """Return whether the group with the largest stall has most of it, and the next one far less,
    and this is so in each part of the steps: else it may be chance. [groups, parts], seconds"""
    sums_s, total_s = stalls_s.sum(axis=1), float(stalls_s.sum())
    *_, second, first = sorted(sums_s.tolist())
    if first < _MOST * total_s or second > _NEXT * first:
        return False
    parts_s = stalls_s.sum(axis=0)
    counted = parts_s >= _LEAST_OF_PART * total_s
    return bool(np.all(stalls_s[sums_s.argmax(), counted] >= _MOST * parts_s[counted]))
