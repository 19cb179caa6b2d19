"""Read the profiles of a job's ranks, and join them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeprof.cli.run_note import RANK_NOTE
from pipeprof.errors import PipeprofError
from pipeprof.storage.urls import is_local, redact

if TYPE_CHECKING:
    from pipeprof.analyze.job.rank_steps import RankSteps
    from pipeprof.model import Profile, TrainingJob


_MOST_EXACT = 64
"""Most profiles of which each step is charged by itself."""


@dataclass
class LoaderRanks:
    """The ranks of one loader in one job."""

    ranks: dict[int, RankSteps] = field(default_factory=dict)
    """Rank → its newest profile's steps."""
    replaced: int = 0
    """Profiles of the same rank that are older."""

    @property
    def created(self) -> str:
        return max(rank.created for rank in self.ranks.values())


def read_profiles(urls: Iterable[str], notes: list[str]) -> Iterator[tuple[str, Profile]]:
    """Yield the profiles among the files ``urls``. Those that cannot be read become ``notes``."""
    from pipeprof.model import Profile
    from pipeprof.storage.write import read_object
    from pipeprof.store import load, loads

    for url in urls:
        if not url.endswith(".json") or url.endswith(f"/{RANK_NOTE}"):
            continue
        try:
            result = load(url) if is_local(url) else loads(read_object(url), redact(url))
        except PipeprofError as error:
            notes.append(f"left out: {error}")
            continue
        if isinstance(result, Profile):
            yield redact(url), result


def steps_of(profiles: Iterable[tuple[str, Profile]], count: int) -> Iterator[RankSteps]:
    """Yield the steps of those ``profiles``, about ``count``, that have a rank. No profile is
    kept, as a job may have thousands."""
    from pipeprof.analyze.job.rank_steps import RankSteps

    for url, profile in profiles:
        if profile.environment.rank is not None:
            yield RankSteps.of(profile, url, count <= _MOST_EXACT)


def newest_job(ranks: Iterable[RankSteps], notes: list[str]) -> list[LoaderRanks] | None:
    """Return the loaders of the newest job with at least two ranks; ``None`` without one."""
    jobs: dict[str, dict[str, LoaderRanks]] = {}
    for steps in ranks:
        loaders = jobs.setdefault(steps.job_id or "", {})
        found = loaders.setdefault(steps.name, LoaderRanks())
        other = found.ranks.get(steps.rank)
        found.replaced += other is not None
        if other is None or other.created <= steps.created:
            found.ranks[steps.rank] = steps
    joined = {
        job: [found for found in loaders.values() if len(found.ranks) > 1]
        for job, loaders in jobs.items()
    }
    joined = {job: founds for job, founds in joined.items() if founds}
    if not joined:
        return None
    newest = max(joined, key=lambda job: max(found.created for found in joined[job]))
    others = sorted(job or "a job without a name" for job in joined if job != newest)
    if others:
        notes.append(f"the newest job is shown; the folder also holds {', '.join(others)}")
    return joined[newest]


def job_of_ranks(found: LoaderRanks, notes: Iterable[str]) -> TrainingJob:
    """Return the job whose ranks were ``found``."""
    from pipeprof.analyze.job.verdict import job_of

    ranks = [found.ranks[rank] for rank in sorted(found.ranks)]
    versions = sorted({rank.version for rank in ranks})
    remarks = [*notes]
    if found.replaced:
        remarks.append(f"older profiles of the same ranks are left out: {found.replaced}")
    if len(versions) > 1:
        remarks.append(f"the ranks ran different versions of pipeprof: {', '.join(versions)}")
    return job_of(ranks, [f"{note[0].upper()}{note[1:].rstrip('.')}." for note in remarks])
