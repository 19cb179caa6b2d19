"""What `pipeprof run` says and saves when the script has ended."""

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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from pipeprof.cli.output import judge, write_page
from pipeprof.errors import PipeprofError, StarvedError
from pipeprof.log import log_caught

if TYPE_CHECKING:
    from pipeprof.cli.script import Ending
    from pipeprof.loaders.autopatch.session import Session
    from pipeprof.model import Profile

_log = logging.getLogger(__name__)

Printed: TypeAlias = Literal["report", "full", "markdown", "json"]
"""At the end: the report to stderr, its first screen or in full; the others to stdout."""

_NOTHING = (
    "{script} iterated no DataLoader in its own process{made}, so nothing was measured. Another "
    "kind of loader can be wrapped: pipeprof.wrap(loader). Of a launcher, run what it launches: "
    "torchrun … -m pipeprof run train.py."
)


@dataclass
class End:
    """Stands ready from the start, since the script may leave little behind."""

    session: Session
    script: str
    threshold: float
    out: Path
    html: bool
    quiet: bool
    printed: Printed

    def __post_init__(self) -> None:
        self._ending: Ending | None = None
        """``None`` until the script has run."""
        rank = os.environ.get("RANK", "")
        self._rank = int(rank) if re.fullmatch("[0-9]{1,9}", rank) else None
        """Of this process among those that torchrun started."""
        self._shown_folder = self.out if self._rank is None else self.out / f"rank{self._rank}"
        self._folder = Path(os.path.abspath(self._shown_folder))
        self._stdout, self._stderr = sys.stdout, sys.stderr
        self._complaint: str | None = None

    def exit_code(self, ending: Ending, limit: float | None) -> Any:
        """The script has ended. Its own exit code; that of a starved run when it ended well and a
        loader was starved more than ``limit``."""
        self._ending = ending
        if self.session.is_ours:
            # now: at exit, what starts threads can no longer be imported
            import pipeprof.report.document.build
            import pipeprof.report.terminal.render
            import pipeprof.store

            if self.html:
                import pipeprof.report.html.page
            if self.printed == "markdown":
                import pipeprof.report.markdown.render  # noqa: F401
        if limit is None or ending.how is not None or not self.session.is_ours:
            return ending.code
        try:
            for profile in self._profiles:
                judge(profile, profile.name, limit)
        except StarvedError as error:
            self._complaint = str(error)
            return error.exit_code
        return ending.code

    def tell(self) -> None:
        """To be called when the process exits, after the script's own handlers."""
        if self._ending is None or not self.session.is_ours:
            return
        try:
            self._tell(self._ending)
        except KeyboardInterrupt:
            pass
        except Exception as error:
            log_caught(_log, error, "the profile is not shown", logging.WARNING)
            self._say(f"the profile cannot be shown ({type(error).__name__}).")
        if self._ending.interrupted:
            _die_of_interrupt()

    def _tell(self, ending: Ending) -> None:
        profiles, made = self._profiles, self.session.made
        if ending.how is not None:
            seen = "its loaders were" if profiles else "no loader was"
            self._say(f"{self.script} {ending.how}; {seen} measured until then.")
        elif not profiles and not self.session.problems:
            found = f" ({', '.join(made)} made)" if made else ""
            self._say(_NOTHING.format(script=self.script, made=found))
        for problem in [*self.session.problems, *self.session.remarks()]:
            self._say(f"{problem}.")
        if not self._rank:  # what other ranks print would be much the same
            self._print(profiles)
        saved = self._save(profiles)
        if saved and not self.quiet:
            rank = f"rank {self._rank}: " if self._rank is not None else ""
            self._say(f"{rank}saved {', '.join(map(str, saved))}")
        if self._complaint is not None:
            self._say(self._complaint)

    def _print(self, profiles: Sequence[Profile]) -> None:
        from pipeprof.report.document.build import first_screen, full_report

        if self.printed == "json":
            from pipeprof.store import dumps

            data = b"[" + b",".join(map(dumps, profiles)) + b"]"
            with suppress(OSError, ValueError):  # nobody may be there to read it
                sys.stdout.flush()
                click.echo(data, file=self._stdout)
        elif self.printed == "markdown":
            from pipeprof.report.markdown.render import render_markdown, under_heading
            from pipeprof.report.text import write_text

            reports = [
                under_heading(profile.name, render_markdown(full_report(profile)))
                for profile in profiles
            ]
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                write_text("\n".join(reports), self._stdout)
        elif not self.quiet:
            from pipeprof.report.terminal.render import print_document

            report = full_report if self.printed == "full" else first_screen
            for profile in profiles:
                self._say(f"{profile.name}\n")
                with suppress(OSError, ValueError):
                    print_document(report(profile), self._stderr)
                    self._stderr.write("\n")

    @cached_property
    def _profiles(self) -> list[Profile]:
        return self.session.profiles(self.threshold)

    def _save(self, profiles: Sequence[Profile]) -> list[Path]:
        from pipeprof.report.document.build import full_report

        saved: list[Path] = []
        try:
            if profiles:
                self._folder.mkdir(parents=True, exist_ok=True)
            for profile, name in zip(profiles, _file_names(profiles), strict=True):
                profile.save(self._folder / name)
                saved.append(self._shown_folder / name)
                if self.html:
                    page = Path(name).with_suffix(".html")
                    write_page(full_report(profile), self._folder / page, say=False)
                    saved.append(self._shown_folder / page)
        except PipeprofError as error:
            self._say(str(error))
        except OSError as error:
            self._say(f"{self._shown_folder} cannot be made: {error.strerror}.")
        return saved

    def _say(self, line: str) -> None:
        with suppress(OSError, ValueError):  # the script may have closed it
            click.echo(f"pipeprof: {line}", file=self._stderr)


def _file_names(profiles: Sequence[Profile]) -> Iterator[str]:
    """``train.py-42.json``, each once."""
    seen: set[str] = set()
    for profile in profiles:
        plain = re.sub(r"[^\w.]+", "-", profile.name).strip("-.")[-150:] or "loader"
        name, count = plain, 1
        while name in seen:
            count += 1
            name = f"{plain}-{count}"
        seen.add(name)
        yield f"{name}.json"


def _die_of_interrupt() -> None:
    """As Python does after an interrupt that nobody caught: who started us can tell."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
