"""Implement `pipeprof gather`: one report from the profiles of all ranks of a job."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.job_profiles import job_of_ranks, newest_job, read_profiles, read_steps
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

if TYPE_CHECKING:
    from pipeprof.model import TrainingJob

EXAMPLE = """\b
Examples:
  pipeprof gather pipeprof-run
  pipeprof gather pipeprof-run --json
  pipeprof gather pipeprof-run --trace job.json.gz
"""


@click.command(epilog=EXAMPLE)
@click.argument("folder", metavar="FOLDER")
@click.option("--trace", type=click.Path(path_type=Path), default=None, metavar="OUT",
              help="Write a Chrome trace with a track for each of at most 64 ranks.")  # fmt: skip
@html_option
@markdown_option
@json_option
def command(
    folder: str, trace: Path | None, html: Path | None, markdown: bool, as_json: bool
) -> None:
    """Join the profiles of a job's ranks, and report who holds the job up.

    FOLDER is the path or URL where `pipeprof run` saved them, one folder for each rank. Ranks
    synchronise in each step, so all wait for the one whose batch comes last. The report says how
    much of the job's time that takes, for which ranks, hosts and causes, and what each cure would
    give.
    """
    refuse_clashes(markdown, as_json, html)
    jobs = gather(folder)
    if (html or trace) and len(jobs) > 1:
        option, names = "--html" if html else "--trace", ", ".join(job.name for job in jobs)
        raise UsageError(f"{option} writes one file, and there are several loaders: {names}.")
    if trace is not None:
        _write_trace(jobs[0], trace)
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


def _write_trace(job: TrainingJob, out: Path) -> None:
    from pipeprof.report.trace.job import MOST_RANKS, render_job_trace
    from pipeprof.store import write_atomically

    if len(job.ranks) > MOST_RANKS:
        raise UsageError(
            f"--trace shows at most {MOST_RANKS} ranks, and there are {len(job.ranks)}."
        )
    files = [rank.file for rank in sorted(job.ranks, key=lambda rank: rank.rank)]
    for file in files:
        refuse_overwrite(Path(file), out)
    profiles = [profile for _, profile in read_profiles(files, [])]
    write_atomically(out, render_job_trace(profiles, compressed=out.suffix == ".gz"))
    click.echo(f"{out}: open it in ui.perfetto.dev or chrome://tracing.", err=True)


def gather(folder: str | PathLike[str]) -> list[TrainingJob]:
    """Join the profiles that the ranks of a job saved.

    Args:
        folder: Path or URL where ``pipeprof run`` saved them, with a folder for each rank.

    Returns:
        A job for each loader that at least two ranks iterated.

    Raises:
        ProfileError: It does not hold the profiles of two ranks of one job.
        UsageError: It is no folder.

    Examples:
        >>> for job in pipeprof.gather("pipeprof-run"):  # doctest: +SKIP
        ...     wandb.log(job.metrics())
    """
    url, notes = os.fspath(folder), list[str]()
    files = _files(url)
    ranks = newest_job(read_steps(files, notes), notes)
    if ranks is None:
        raise ProfileError(
            f"{redact(url)} does not hold the profiles of two ranks of one job. Start each rank "
            f"under pipeprof: torchrun … -m pipeprof run train.py, or srun … pipeprof run train.py."
        )
    ended = [*_without_profile(files)]
    return [job_of_ranks(found, notes, ended) for found in ranks]


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
