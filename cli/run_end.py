"""Print and save the profiles of `pipeprof run` when the script has ended."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.output import raise_if_starved, write_page
from pipeprof.errors import PipeprofError, StarvedError
from pipeprof.integrations.under_run import has_other_profiles
from pipeprof.log import log_caught
from pipeprof.measure.job_place import find_job_place

if TYPE_CHECKING:
    from pipeprof.cli.run_options import ReportOptions
    from pipeprof.cli.script import Ending
    from pipeprof.loaders.autopatch.session import Session
    from pipeprof.model import Profile

_log = logging.getLogger(__name__)

_NO_LOADER = (
    "{script} iterated no DataLoader in its own process{made}, so nothing was measured. Wrap "
    "another kind of loader with pipeprof.wrap(loader). With a launcher, run pipeprof under it: "
    "torchrun … -m pipeprof run train.py."
)


@dataclass
class RunReporter:
    """Reports on a script at its end. It exists before the script runs, which may close the output
    streams or change the folder."""

    session: Session
    script: str
    options: ReportOptions

    def __post_init__(self) -> None:
        self._ending: Ending | None = None
        """``None`` until the script has run."""
        place = find_job_place()
        self._rank = place.rank if place else None
        """Rank of this process in its job; ``None`` where it is alone."""
        out = self.options.out
        self._shown_folder = out if self._rank is None else out / f"rank{self._rank}"
        self._folder = Path(os.path.abspath(self._shown_folder))
        self._stdout, self._stderr = sys.stdout, sys.stderr
        self._starved_message: str | None = None

    def exit_code(self, ending: Ending) -> Any:
        """Return the exit code of the ended script. Where it succeeded but a loader was
        starved more than is allowed, return that of `StarvedError`."""
        self._ending, limit = ending, self.options.fail_if_starved
        if self.session.is_profiled_process:
            # import now: modules that start threads cannot be imported at exit
            import pipeprof.report.document.build
            import pipeprof.report.terminal.render
            import pipeprof.store

            if self.options.html:
                import pipeprof.report.html.page
            if self.options.mode == "markdown":
                import pipeprof.report.markdown.render  # noqa: F401
        if limit is None or ending.failure is not None or not self.session.is_profiled_process:
            return ending.code
        try:
            for profile in self._profiles:
                raise_if_starved(profile, profile.name, limit)
        except StarvedError as error:
            self._starved_message = str(error)
            return error.exit_code
        return ending.code

    def report(self) -> None:
        """Print and save the profiles. Called at exit, after the script's own handlers."""
        if self._ending is None or not self.session.is_profiled_process:
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
        profiles, made = self._profiles, self.session.created
        if ending.failure is not None:
            measured = "its loaders were" if profiles else "no loader was"
            self._print_line(f"{self.script} {ending.failure}; {measured} measured until then.")
        elif has_other_profiles(self._folder):
            self._print_line(f"the workers left their profiles in {self._shown_folder}")
        elif not profiles and not self.session.problems:
            created = f" ({', '.join(made)} created)" if made else ""
            self._print_line(_NO_LOADER.format(script=self.script, made=created))
        for problem in [*self.session.problems, *self.session.remarks()]:
            self._print_line(f"{problem}.")
        if not self.options.quiet:
            for name, tuning in self.session.tunings().items():
                self._print_line(f"{name}, tuned:\n\n{indent(str(tuning), '  ')}\n")
        if not self._rank:  # the reports of other ranks would be much the same
            self._print(profiles)
        saved = self._save(profiles)
        if saved and not self.options.quiet:
            rank = f"rank {self._rank}: " if self._rank is not None else ""
            self._print_line(f"{rank}saved {', '.join(map(str, saved))}")
        if self._starved_message is not None:
            self._print_line(self._starved_message)

    def _print(self, profiles: Sequence[Profile]) -> None:
        from pipeprof.report.document.build import first_screen, full_report

        if self.options.mode == "json":
            from pipeprof.store import dumps

            data = b"[" + b",".join(map(dumps, profiles)) + b"]"
            with suppress(OSError, ValueError):  # the reader of the pipe may have gone
                sys.stdout.flush()
                click.echo(data, file=self._stdout)
        elif self.options.mode == "markdown":
            from pipeprof.report.markdown.render import render_markdown, under_heading
            from pipeprof.report.text import write_text

            reports = [
                under_heading(profile.name, render_markdown(full_report(profile)))
                for profile in profiles
            ]
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                write_text("\n".join(reports), self._stdout)
        elif not self.options.quiet:
            from pipeprof.report.terminal.render import print_document

            report = full_report if self.options.mode == "full" else first_screen
            for profile in profiles:
                self._print_line(f"{profile.name}\n")
                with suppress(OSError, ValueError):
                    print_document(report(profile), self._stderr)
                    self._stderr.write("\n")

    @cached_property
    def _profiles(self) -> list[Profile]:
        return self.session.profiles(self.options.threshold)

    def _save(self, profiles: Sequence[Profile]) -> list[Path]:
        from pipeprof.report.document.build import full_report

        saved: list[Path] = []
        try:
            if profiles:
                self._folder.mkdir(parents=True, exist_ok=True)
            for profile, name in zip(profiles, _file_names(profiles), strict=True):
                profile.save(self._folder / name)
                saved.append(self._shown_folder / name)
                if self.options.html:
                    page = Path(name).with_suffix(".html")
                    write_page(full_report(profile), self._folder / page, announce=False)
                    saved.append(self._shown_folder / page)
        except PipeprofError as error:
            self._print_line(str(error))
        except OSError as error:
            self._print_line(f"{self._shown_folder} cannot be created: {error.strerror}.")
        return saved

    def _print_line(self, line: str) -> None:
        with suppress(OSError, ValueError):  # the script may have closed it
            click.echo(f"pipeprof: {line}", file=self._stderr)


def _file_names(profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield a unique file name for each profile, such as ``train.py-42.json``."""
    used: set[str] = set()
    for profile in profiles:
        plain = re.sub(r"[^\w.]+", "-", profile.name).strip("-.")[-150:] or "loader"
        name, count = plain, 1
        while name in used:
            count += 1
            name = f"{plain}-{count}"
        used.add(name)
        yield f"{name}.json"


def _exit_by_interrupt() -> None:
    """End the process by SIGINT, as Python does after an uncaught interrupt, so that the parent
    process can recognise it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
