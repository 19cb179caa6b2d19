"""Implement `pipeprof gather`: one report from the profiles of all ranks of a job."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from pipeprof.cli.job_profiles import job_of_ranks, newest_job, read_steps
from pipeprof.cli.output import (
    html_option,
    json_option,
    markdown_option,
    print_json,
    print_markdown,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.run_note import RANK_NOTE, Note, read_note
from pipeprof.cli.saved import refuse_overwrite
from pipeprof.errors import PipeprofError, ProfileError, UsageError
from pipeprof.storage.urls import is_local, local_path, redact

EXAMPLE = """\b
Examples:
  pipeprof gather pipeprof-run
  pipeprof gather pipeprof-run --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("folder", metavar="FOLDER")
@html_option
@markdown_option
@json_option
def command(folder: str, html: Path | None, markdown: bool, as_json: bool) -> None:
    """Join the profiles of a job's ranks, and report who holds the job up.

    FOLDER is the path or URL where `pipeprof run` saved them, one folder for each rank. Ranks
    synchronise in each step, so all wait for the one whose batch comes last. The report says how
    much of the job's time that takes, for which ranks, hosts and causes, and what each cure would
    give.
    """
    refuse_clashes(markdown, as_json, html)
    notes: list[str] = []
    files = _files(folder)
    ranks = newest_job(read_steps(files, notes), notes)
    if ranks is None:
        raise ProfileError(
            f"{redact(folder)} does not hold the profiles of two ranks of one job. Start each rank "
            f"under pipeprof: torchrun … -m pipeprof run train.py, or srun … pipeprof run train.py."
        )
    ended = [*_without_profile(files)]
    jobs = [job_of_ranks(found, notes, ended) for found in ranks]
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


def _files(folder: str) -> list[str]:
    """Return the JSON files below ``folder``, profiles and notes."""
    from pipeprof.storage.write import objects_below

    if is_local(folder) and not os.path.isdir(local_path(folder)):
        raise UsageError(f"{folder} is no folder; name the one where pipeprof run saved profiles.")
    return [url for url in sorted(objects_below(folder)) if url.endswith(".json")]


def _without_profile(files: Sequence[str]) -> Iterator[Note]:
    """Yield the notes of ranks that left nothing else in their folder."""
    folders = Counter(url.rpartition("/")[0] for url in files)
    for url in files:
        if url.endswith(f"/{RANK_NOTE}") and folders[url.rpartition("/")[0]] == 1:
            with suppress(PipeprofError):  # another's file of this name
                yield read_note(url)
