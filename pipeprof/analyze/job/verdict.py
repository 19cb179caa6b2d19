"""Say what holds a job up: which rank's batches, which host's, or whoever's happen to be late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pipeprof.analyze.job.steps import JobSteps
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.wording.job import job_headline, job_notes
from pipeprof.model import Cure, JobRank, Profile, TrainingJob
from pipeprof.model.job import Straggling
from pipeprof.model.profile import Verdict

LEAST_STEPS = 20
"""Fewer common steps decide nothing."""
_MOST = 0.5
"""Share of the job's stall from which on one rank, or one host, is said to hold the job up."""
_NEXT = 0.5
"""Most of that share that the next rank, or host, may have. Two that alternate have half each."""
_TOGETHER = 0.7
"""Share of the last rank's wait that the median rank waits too, from which on all are slow."""
_WARMUP = 8
"""Batches at the beginning of an epoch that are left out, as workers are only starting."""


def job_of(
    profiles: Sequence[Profile], files: Sequence[str], notes: Sequence[str] = ()
) -> TrainingJob:
    """Return the job whose ranks have these ``profiles``, one each, of the same loader.

    Args:
        profiles: At least two, with known ranks.
        files: Their paths, as the user gave them.
        notes: What the reader has to know of how they were found.
    """
    steps = JobSteps.of(profiles, _WARMUP)
    count = steps.stalls_s.shape[1]
    cycle_s = float(steps.cycles_s.mean()) if count else 0.0
    starved, interval = _starved(steps)
    verdict = _verdict(interval, count, profiles[0].diagnosis.threshold)
    ranks = _ranks(steps, profiles, files) if count else ()
    hosts = _host_shares(ranks)
    straggling = _straggling(steps, ranks, hosts) if verdict == "starved" else "none"
    cures = tuple(sorted(_cures(steps, profiles), key=lambda cure: -cure.gain)) if count else ()
    found = {_rank(profile) for profile in profiles}
    world_size = max([len(found), *map(_world_size, profiles)])
    missing = tuple(sorted(set(range(world_size)) - found))
    samples = sum(profile.throughput.samples_per_s / profile.throughput.batches_per_s
                  for profile in profiles if profile.throughput.batches_per_s)  # fmt: skip
    job = TrainingJob(
        name=profiles[0].name,
        created=max(profile.created for profile in profiles),
        pipeprof=profiles[0].environment.pipeprof,
        world_size=world_size,
        missing=missing,
        steps=count,
        cycle_s=cycle_s,
        samples_per_s=samples / cycle_s if cycle_s else 0.0,
        verdict=verdict,
        starved_fraction=starved,
        starved_interval=interval,
        straggling=straggling,
        headline="",
        blame=_blame(steps) if count else {},
        ranks=ranks,
        cures=cures,
    )
    headline = job_headline(job, hosts)
    return replace(job, headline=headline, notes=(*notes, *job_notes(job)))


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


def _ranks(
    steps: JobSteps, profiles: Sequence[Profile], files: Sequence[str]
) -> tuple[JobRank, ...]:
    last, stall_s, every = steps.last, steps.stall_s, []
    total_s = float(stall_s.sum())
    for place, (profile, file) in enumerate(zip(profiles, files, strict=True)):
        own = last == place
        charges = {cause: float(s[own].sum()) for cause, s in steps.causes[place].items()}
        worst = max(charges, key=charges.__getitem__, default=None)
        own_s = float(stall_s[own].sum())
        every.append(
            JobRank(
                rank=_rank(profile),
                host=profile.environment.host,
                file=file,
                starved_fraction=profile.diagnosis.starved_fraction,
                last_share=float(own.mean()),
                stall_share=own_s / total_s if total_s else 0.0,
                bottleneck=worst if own_s > 0 else None,
            )
        )
    return tuple(sorted(every, key=lambda rank: (-rank.stall_share, rank.rank)))


def _blame(steps: JobSteps) -> dict[str, float]:
    """Return cause → share of the job's stall, each step charged to what its last rank did."""
    sums: dict[str, float] = {}
    for place, charges in enumerate(steps.causes):
        own = steps.last == place
        for cause, seconds in charges.items():
            sums[cause] = sums.get(cause, 0.0) + float(seconds[own].sum())
    total_s = sum(sums.values())
    shares = {cause: seconds / total_s for cause, seconds in sums.items() if seconds > 0}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _host_shares(ranks: Sequence[JobRank]) -> dict[str, float]:
    """Return host → share of the job's stall, where all hosts are known and there are several."""
    hosts = [rank.host for rank in ranks]
    shares: dict[str, float] = {}
    for rank in ranks:
        if rank.host is not None:
            shares[rank.host] = shares.get(rank.host, 0.0) + rank.stall_share
    return shares if None not in hosts and len(shares) > 1 else {}


def _straggling(steps: JobSteps, ranks: Sequence[JobRank], hosts: dict[str, float]) -> Straggling:
    waits_s = np.percentile(steps.stalls_s, 50, axis=0, method="lower")
    if float(waits_s.sum()) >= _TOGETHER * float(steps.stall_s.sum()):
        return "all"
    if _stands_out([rank.stall_share for rank in ranks]):
        return "rank"
    return "host" if hosts and _stands_out([*hosts.values()]) else "turns"


def _stands_out(shares: Sequence[float]) -> bool:
    """Return whether the largest of the ``shares`` is most, and the next one far smaller."""
    *_, second, first = sorted(shares)
    return first >= _MOST and second <= _NEXT * first


def _cures(steps: JobSteps, profiles: Sequence[Profile]) -> Iterator[Cure]:
    """Yield what each cure would give. A rank, or the ranks of a host, wait no longer than the
    median of the others; no batch is later than the rank's median one; or data are free."""
    stalls_s, pace_s = steps.stalls_s, steps.pace_s
    was_last = np.unique(steps.last).tolist()
    for place in was_last:
        if (gain := _gain_of(steps, [place])) > 0:
            yield Cure("rank", str(_rank(profiles[place])), gain)
    hosts: dict[str, list[int]] = {}
    for place, profile in enumerate(profiles):
        hosts.setdefault(profile.environment.host or "", []).append(place)
    for host, members in hosts.items():
        several = 1 < len(members) < len(profiles) and not set(members).isdisjoint(was_last)
        if several and (gain := _gain_of(steps, members)) > 0:
            yield Cure("host", host, gain)
    usual_s = np.minimum(stalls_s, np.median(stalls_s, axis=1, keepdims=True))
    yield Cure("tails", "", steps.gain_with(usual_s, pace_s))
    yield Cure("loading", "", steps.gain_with(np.zeros_like(stalls_s), np.zeros(len(profiles))))


def _gain_of(steps: JobSteps, cured: Sequence[int]) -> float:
    """Return the gain if the ``cured`` ranks waited no longer than the others do."""
    others = np.delete(np.arange(len(steps.stalls_s)), cured)
    stalls_s, pace_s = steps.stalls_s.copy(), steps.pace_s.copy()
    stalls_s[cured] = np.minimum(stalls_s[cured], np.median(stalls_s[others], axis=0))
    pace_s[cured] = np.minimum(pace_s[cured], np.median(pace_s[others]))
    return steps.gain_with(stalls_s, pace_s)


def _rank(profile: Profile) -> int:
    rank = profile.environment.rank
    assert rank is not None
    return rank


def _world_size(profile: Profile) -> int:
    job = profile.environment.job
    return job.world_size or 0 if job else 0
