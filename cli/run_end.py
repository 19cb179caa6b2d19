"""Print and save the profiles of `pipeprof run` when the script has ended."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.job_profiles import job_of_ranks, newest_job, read_profiles, steps_of
from pipeprof.cli.output import raise_if_starved
from pipeprof.cli.run_note import BEGUN, NOTE, Note, in_order, read_note
from pipeprof.cli.run_ranks import OtherRanks, has_other_nodes, is_large
from pipeprof.cli.run_save import ProfileFolder, save_and_note, shown
from pipeprof.errors import StarvedError
from pipeprof.integrations.under_run import has_other_profiles
from pipeprof.log import log_caught
from pipeprof.measure.job_place import find_job_place
from pipeprof.storage.urls import is_local, redact
from pipeprof.units import counted

if TYPE_CHECKING:
    from pipeprof.cli.run_options import ReportOptions
    from pipeprof.cli.run_settings import RunSettings
    from pipeprof.cli.script import Ending
    from pipeprof.loaders.autopatch.session import Session
    from pipeprof.model import Profile, TrainingJob
    from pipeprof.report.document.blocks import Document

_log = logging.getLogger(__name__)

_MOST_SHOWN = 5
"""Most reports that are printed of loaders in processes that the script started."""
_NO_LOADER = (
    "{script} iterated no DataLoader, and no process that it started did{made}, so nothing was "
    "measured. Wrap another kind of loader, or the function that returns a batch, with "
    "pipeprof.wrap(…). "
    "Processes on other hosts are measured by themselves: srun … pipeprof run train.py."
)
_NOT_ENDED = (
    "{count} that it started left no profile for this report: {were} killed, or still {run}."
)


@dataclass
class RunReporter:
    """Reports on a script at its end, with the processes that it started. It exists before the
    script runs, which may close the output streams or change the folder.

    Raises `UsageError` where nothing can be saved in the folder that the user named.
    """

    session: Session
    script: str
    options: ReportOptions
    settings: RunSettings

    def __post_init__(self) -> None:
        self._ending: Ending | None = None
        """``None`` until the script has run."""
        self._process = os.getpid()
        self._stdout, self._stderr = sys.stdout, sys.stderr
        self._starved_message: str | None = None
        self._unread: list[str] = []
        if not is_local(self.settings.out):
            ProfileFolder(self.settings.out).prepare(self.options.html)
        place = find_job_place()
        self._others = None if place and place.rank else OtherRanks(self.settings.out)

    def exit_code(self, ending: Ending) -> Any:
        """Return the exit code of the ended script. Where it succeeded but a loader was
        starved more than is allowed, return that of `StarvedError`."""
        self._ending, limit = ending, self.options.fail_if_starved
        if os.getpid() != self._process:
            return ending.code
        # import now: modules that use threads cannot be imported at exit, nor can fsspec without
        # the first of these
        import concurrent.futures.thread  # noqa: F401

        import pipeprof.report.document.build
        import pipeprof.report.document.job
        import pipeprof.report.terminal.render

        if self.options.mode == "markdown":
            import pipeprof.report.markdown.render  # noqa: F401
        ProfileFolder(self.settings.out).prepare(self.options.html)
        if limit is None or ending.failure is not None:
            return ending.code
        try:
            for profile in [*self._profiles, *(profile for _, profile in self._followed)]:
                raise_if_starved(profile, profile.name, limit)
        except StarvedError as error:
            self._starved_message = str(error)
            return error.exit_code
        return ending.code

    def report(self) -> None:
        """Print and save the profiles. Called at exit, after the script's own handlers."""
        if self._ending is None or os.getpid() != self._process:
            return
        try:
            self._report(self._ending)
        except KeyboardInterrupt:
            pass
        except Exception as error:
            log_caught(_log, error, "the profile is not shown", logging.WARNING)
            self._print_line(f"the profile cannot be shown ({type(error).__name__}).")
        if self._ending.interrupted:
            _exit_by_interrupt()

    def _report(self, ending: Ending) -> None:
        profiles, followed = self._profiles, self._notes
        own = save_and_note(self.settings, profiles, self.session.problems, followed=False)
        self._say_what_is_missing(ending, bool(profiles or followed))
        for problem in [*own.problems, *([] if followed else self.session.remarks())]:
            self._print_line(f"{problem}.")
        if not self.options.quiet:
            for name, tuning in self.session.tunings().items():
                self._print_line(f"{name}, tuned:\n\n{indent(str(tuning), '  ')}\n")
        if not own.rank:
            files = [*own.profiles, *[""] * len(profiles)]  # some may not have been saved
            self._print(list(zip(files, profiles, strict=False)))
        for note in (own, *followed):
            self._print_note(note, note is own and note.rank is None)
        for unread in self._unread:
            self._print_line(f"{unread}.")
        if self._starved_message is not None:
            self._print_line(self._starved_message)

    def _say_what_is_missing(self, ending: Ending, measured: bool) -> None:
        if ending.failure is not None:
            were = "its loaders were" if measured else "no loader was"
            self._print_line(f"{self.script} {ending.failure}; {were} measured until then.")
        elif has_other_profiles(self.settings.out):
            self._print_line(f"the workers left their profiles in {self._shown(self.settings.out)}")
        elif not measured and not self.session.problems and not self._not_ended:
            made = self.session.created
            created = f" ({', '.join(made)} created)" if made else ""
            self._print_line(_NO_LOADER.format(script=self.script, made=created))
        if count := self._not_ended:
            were, run = ("it was", "runs") if count == 1 else ("they were", "run")
            processes = counted(count, "process", "processes")
            self._print_line(_NOT_ENDED.format(count=processes, were=were, run=run))

    def _print_note(self, note: Note, is_alone: bool) -> None:
        """Print what one process saved, and what it could not do."""
        name = "" if is_alone else f"{note.name}: "
        if not is_alone and note.process != self._process:
            for problem in note.problems:
                self._print_line(f"{name}{problem}.")
        if note.files and not self.options.quiet:
            self._print_line(f"{name}saved {', '.join(map(self._shown, note.urls))}")

    def _print(self, own: Sequence[tuple[str, Profile]]) -> None:
        """Print the reports of this process, and of those that it started. Where these are ranks of
        one job, print what holds the job up instead."""
        from pipeprof.report.document.build import first_screen, full_report
        from pipeprof.report.document.job import job_document

        every, place = [*own, *self._followed], find_job_place()
        if self._others and place and has_other_nodes(place):
            self._others.wait(place)  # even if nothing is printed: they may send their profiles
        if self.options.mode == "json":
            from pipeprof.store import dumps

            data = b"[" + b",".join(dumps(profile) for _, profile in every) + b"]"
            with suppress(OSError, ValueError):  # the reader of the pipe may have gone
                sys.stdout.flush()
                click.echo(data, file=self._stdout)
            return
        if self.options.quiet and self.options.mode != "markdown":
            return
        jobs = self._jobs(every)
        joined = {job.name for job in jobs}
        # the reports of other ranks would be much the same
        first = [profile for _, profile in every if not profile.environment.rank]
        alone = [profile for profile in first if profile.name not in joined]
        shown = alone[: len(own) + _MOST_SHOWN]
        form = first_screen if self.options.mode == "report" else full_report
        documents = [(job.name, job_document(job)) for job in jobs]
        documents += [(profile.name, form(profile)) for profile in shown]
        self._print_documents(documents)
        if len(alone) > len(shown):
            more = counted(len(alone) - len(shown), "report")
            self._print_line(f"pipeprof report FILE shows {more} more.")
        if place and is_large(place):
            self._print_line(f"pipeprof gather {redact(self.options.out)} joins all ranks.")
        if jobs:
            self._print_line("pipeprof report FILE shows what one rank measured by itself.")

    def _print_documents(self, documents: Sequence[tuple[str, Document]]) -> None:
        with suppress(OSError, ValueError):  # the script may have closed its streams
            if self.options.mode == "markdown":
                from pipeprof.report.markdown.render import render_markdown, under_heading
                from pipeprof.report.text import write_text

                sys.stdout.flush()
                reports = [under_heading(name, render_markdown(each)) for name, each in documents]
                write_text("\n".join(reports), self._stdout)
                return
            from pipeprof.report.terminal.render import print_document

            for name, document in documents:
                self._print_line(f"{name}\n")
                print_document(document, self._stderr)
                self._stderr.write("\n")

    def _jobs(self, here: Sequence[tuple[str, Profile]]) -> list[TrainingJob]:
        """Return the job of which this process, or one that it started, is rank 0, for each loader;
        none where it has no such rank. ``here`` is what was measured on this host."""
        ranks = {profile.environment.rank for _, profile in here}
        place = find_job_place()  # where a rank 0 was started by this process, it has waited
        if 0 not in ranks or self._others is None or (place and is_large(place)):
            return []
        notes: list[str] = []
        others = self._others.wait(place) if place else self._others.now()
        urls = [url for note in others if note.rank not in ranks for url in note.profiles]
        found = newest_job(steps_of(chain(here, read_profiles(urls, notes))), notes)
        return [job_of_ranks(each, notes, others) for each in found or ()]

    @cached_property
    def _profiles(self) -> list[Profile]:
        return self.session.profiles(self.options.threshold)

    @cached_property
    def _notes(self) -> list[Note]:
        """Notes of the processes that the script started, and that have ended."""
        found = Path(self.settings.scratch).glob(f"*{NOTE}")
        return in_order(read_note(str(path)) for path in found)

    @cached_property
    def _not_ended(self) -> int:
        """Number of processes of this host that the script started, and that left no note."""
        return sum(1 for _ in Path(self.settings.scratch).glob(f"*{BEGUN}"))

    @cached_property
    def _followed(self) -> list[tuple[str, Profile]]:
        """The profiles of these processes, with their files."""
        return [
            *read_profiles((url for note in self._notes for url in note.profiles), self._unread)
        ]

    def _shown(self, url: str) -> str:
        return shown(url, self.options.out)

    def _print_line(self, line: str) -> None:
        with suppress(OSError, ValueError):  # the script may have closed it
            click.echo(f"pipeprof: {line}", file=self._stderr)


def _exit_by_interrupt() -> None:
    """End the process by SIGINT, as Python does after an uncaught interrupt, so that the parent
    process can recognise it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
