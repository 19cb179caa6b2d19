"""Implement `pipeprof gather`: one report from the profiles of all ranks of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.output import (
    html_option,
    json_option,
    markdown_option,
    print_json,
    print_markdown,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.saved import refuse_overwrite
from pipeprof.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from pipeprof.model import Profile, TrainingJob

EXAMPLE = """\b
Examples:
  pipeprof gather pipeprof-run
  pipeprof gather pipeprof-run --json
"""


@dataclass
class _Found:
    """The profiles of one loader in one job."""

    profiles: dict[int, tuple[Path, Profile]] = field(default_factory=dict)
    """Rank → its newest profile."""
    replaced: int = 0
    """Profiles of the same rank that are older."""


@click.command(epilog=EXAMPLE)
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@html_option
@markdown_option
@json_option
def command(folder: Path, html: Path | None, markdown: bool, as_json: bool) -> None:
    """Join the profiles of a job's ranks, and report who holds the job up.

    FOLDER is where `pipeprof run` saved them, one folder for each rank. Ranks synchronise in each
    step, so all wait for the one whose batch comes last. The report says how much of the job's time
    that takes, for which ranks, hosts and causes, and what each cure would give.
    """
    refuse_clashes(markdown, as_json, html)
    notes: list[str] = []
    jobs = [_job(found, notes) for found in _newest(folder, _profiles(folder, notes), notes)]
    if html is not None and len(jobs) > 1:
        names = ", ".join(job.name for job in jobs)
        raise UsageError(f"--html writes one page, and there are several loaders: {names}.")
    from pipeprof.report.document.job import job_document

    if as_json:
        print_json([job.to_dict() for job in jobs])
        return
    for job in jobs:
        document = job_document(job)
        if html is not None:
            for rank in job.ranks:
                refuse_overwrite(Path(rank.file), html)
            write_page(document, html)
        elif markdown:
            print_markdown(document)
        else:
            from pipeprof.report.terminal.render import print_document

            print_document(document)


def _profiles(folder: Path, notes: list[str]) -> Iterator[tuple[Path, Profile]]:
    """Yield the profiles below ``folder`` that belong to a rank. Files that cannot be read become
    notes."""
    from pipeprof.model import Profile
    from pipeprof.store import load

    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; name the one where pipeprof run saved profiles.")
    for path in sorted(folder.rglob("*.json")):
        try:
            profile = load(path)
        except ProfileError as error:
            notes.append(f"left out: {error}")
            continue
        if isinstance(profile, Profile) and profile.environment.rank is not None:
            yield path, profile


def _newest(
    folder: Path, profiles: Iterable[tuple[Path, Profile]], notes: list[str]
) -> list[_Found]:
    """Return the loaders of the newest job with at least two ranks."""
    jobs: dict[str, dict[str, _Found]] = {}
    for path, profile in profiles:
        place = profile.environment.job
        loaders = jobs.setdefault((place and place.job_id) or "", {})
        found = loaders.setdefault(profile.name, _Found())
        rank = profile.environment.rank
        assert rank is not None
        other = found.profiles.get(rank)
        found.replaced += other is not None
        if other is None or other[1].created <= profile.created:
            found.profiles[rank] = path, profile
    joined = {
        job: [found for found in loaders.values() if len(found.profiles) > 1]
        for job, loaders in jobs.items()
    }
    joined = {job: founds for job, founds in joined.items() if founds}
    if not joined:
        raise ProfileError(
            f"{folder} does not hold the profiles of two ranks of one job. Start each rank under "
            f"pipeprof: torchrun … -m pipeprof run train.py, or srun … pipeprof run train.py."
        )
    newest = max(joined, key=lambda job: max(map(_created, joined[job])))
    others = sorted(job or "a job without a name" for job in joined if job != newest)
    if others:
        notes.append(f"the newest job is shown; the folder also holds {', '.join(others)}")
    return joined[newest]


def _created(found: _Found) -> str:
    return max(profile.created for _, profile in found.profiles.values())


def _job(found: _Found, notes: Iterable[str]) -> TrainingJob:
    from pipeprof.analyze.job.verdict import job_of

    ranks = sorted(found.profiles)
    files = [str(found.profiles[rank][0]) for rank in ranks]
    profiles = [found.profiles[rank][1] for rank in ranks]
    versions = sorted({profile.environment.pipeprof for profile in profiles})
    remarks = [*notes]
    if found.replaced:
        remarks.append(f"older profiles of the same ranks are left out: {found.replaced}")
    if len(versions) > 1:
        remarks.append(f"the ranks ran different versions of pipeprof: {', '.join(versions)}")
    return job_of(
        profiles, files, [f"{note[0].upper()}{note[1:].rstrip('.')}." for note in remarks]
    )
