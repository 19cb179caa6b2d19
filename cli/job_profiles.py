"""Read the profiles of a job's ranks, and join them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pipeprof.cli.run_note import RANK_NOTE, Note
from pipeprof.errors import PipeprofError
from pipeprof.measure.environment import usable_cores
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
    for url in urls:
        result = _read(url)
        if isinstance(result, str):
            notes.append(result)
        elif result is not None:
            yield redact(url), result


def read_steps(urls: Sequence[str], notes: list[str]) -> Iterator[RankSteps]:
    """Yield the steps of the ranks among the files ``urls``. Those that cannot be read become
    ``notes``. Many are read on all cores, and no profile is kept: a job may have thousands."""
    few = len(urls) <= _MOST_EXACT
    read = partial(_read_steps, exact=few)
    with nullcontext() if few else ProcessPoolExecutor(usable_cores()) as pool:
        for result in map(read, urls) if pool is None else pool.map(read, urls, chunksize=16):
            if isinstance(result, str):
                notes.append(result)
            elif result is not None:
                yield result


def steps_of(profiles: Iterable[tuple[str, Profile]]) -> Iterator[RankSteps]:
    """Yield the steps of those of ``profiles`` that have a rank."""
    from pipeprof.analyze.job.rank_steps import RankSteps

    for url, profile in profiles:
        if profile.environment.rank is not None:
            yield RankSteps.of(profile, url)


def _read_steps(url: str, exact: bool) -> RankSteps | str | None:
    """Return the steps of the rank whose profile is at ``url``; as `_read` for other files."""
    from pipeprof.analyze.job.rank_steps import RankSteps

    result = _read(url)
    if result is None or isinstance(result, str):
        return result
    has_rank = result.environment.rank is not None
    return RankSteps.of(result, redact(url), exact) if has_rank else None


def _read(url: str) -> Profile | str | None:
    """Return the profile at ``url``, or why it cannot be read; ``None`` for other results."""
    from pipeprof.model import Profile
    from pipeprof.storage.write import read_object
    from pipeprof.store import load, loads

    if not url.endswith(".json") or url.endswith(f"/{RANK_NOTE}"):
        return None
    try:
        result = load(url) if is_local(url) else loads(read_object(url), redact(url))
    except PipeprofError as error:
        return f"left out: {error}"
    return result if isinstance(result, Profile) else None


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


def job_of_ranks(
    found: LoaderRanks, notes: Iterable[str], ended: Iterable[Note] = ()
) -> TrainingJob:
    """Return the job whose ranks were ``found``. Those of ``ended`` that saved no profile loaded
    nothing."""
    from pipeprof.analyze.job.verdict import job_of

    ranks = [found.ranks[rank] for rank in sorted(found.ranks)]
    versions = sorted({rank.version for rank in ranks})
    remarks = [*notes]
    if found.replaced:
        remarks.append(f"older profiles of the same ranks are left out: {found.replaced}")
    if len(versions) > 1:
        remarks.append(f"the ranks ran different versions of pipeprof: {', '.join(versions)}")
    sizes = sorted({rank.world_size for rank in ranks if rank.world_size is not None})
    if len(sizes) > 1:
        remarks.append(
            f"the ranks say that the job has {' and '.join(map(str, sizes))} ranks: profiles of "
            "several runs may lie in this folder"
        )
    mine = (note for note in ended if not note.files and note.job_id == ranks[0].job_id)
    idle = {note.rank for note in mine if note.rank is not None} - set(found.ranks)
    return job_of(
        ranks,
        [f"{note[0].upper()}{note[1:].rstrip('.')}." for note in remarks],
        sorted(idle),
    )
