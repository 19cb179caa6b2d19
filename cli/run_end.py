"""What `pipeprof run` says and saves when the script has ended."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
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


class End:
    """Stands ready from the start, since the script may leave little behind."""

    def __init__(
        self,
        session: Session,
        script: str,
        threshold: float,
        out: Path,
        html: bool,
        quiet: bool,
        printed: Printed,
    ) -> None:
        self._ending: Ending | None = None
        """``None`` until the script has run."""
        self._session = session
        self._script = script
        self._threshold = threshold
        self._rank = _rank()
        self._shown_folder = out if self._rank is None else out / f"rank{self._rank}"
        self._folder = Path(os.path.abspath(self._shown_folder))
        self._html = html
        self._quiet = quiet
        self._printed = printed
        self._stdout, self._stderr = sys.stdout, sys.stderr
        self._profiles: list[Profile] | None = None
        self._complaint: str | None = None

    def exit_code(self, ending: Ending, limit: float | None) -> Any:
        """The script has ended. Its own exit code; that of a starved run when it ended well and a
        loader was starved more than ``limit``."""
        self._ending = ending
        if self._session.is_ours:
            # now: at exit, what starts threads can no longer be imported
            import pipeprof.report.document.build
            import pipeprof.report.terminal.render
            import pipeprof.store

            if self._html:
                import pipeprof.report.html.page
            if self._printed == "markdown":
                import pipeprof.report.markdown.render  # noqa: F401
        if limit is None or ending.how is not None or not self._session.is_ours:
            return ending.code
        try:
            for profile in self._measured():
                judge(profile, profile.name, limit)
        except StarvedError as error:
            self._complaint = str(error)
            return error.exit_code
        return ending.code

    def tell(self) -> None:
        """To be called when the process exits, after the script's own handlers."""
        if self._ending is None or not self._session.is_ours:
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
        profiles = self._measured()
        if ending.how is not None:
            seen = "its loaders were" if profiles else "no loader was"
            self._say(f"{self._script} {ending.how}; {seen} measured until then.")
        elif not profiles and not self._session.problems:
            made = self._session.made
            self._say(
                _NOTHING.format(
                    script=self._script, made=f" ({', '.join(made)} made)" if made else ""
                )
            )
        for problem in [*self._session.problems, *self._session.remarks()]:
            self._say(f"{problem}.")
        if self._rank:  # much the same as the first
            pass
        elif self._printed == "json":
            self._print_json(profiles)
        elif self._printed == "markdown":
            self._print_markdown(profiles)
        elif not self._quiet:
            self._show(profiles)
        saved = self._save(profiles)
        if saved and not self._quiet:
            rank = f"rank {self._rank}: " if self._rank is not None else ""
            self._say(f"{rank}saved {', '.join(map(str, saved))}")
        if self._complaint is not None:
            self._say(self._complaint)

    def _measured(self) -> list[Profile]:
        if self._profiles is None:
            self._profiles = self._session.profiles(self._threshold)
        return self._profiles

    def _show(self, profiles: Sequence[Profile]) -> None:
        from pipeprof.report.document.build import first_screen, full_report
        from pipeprof.report.terminal.render import print_document

        for profile in profiles:
            self._say(f"{profile.name}\n")
            with suppress(OSError, ValueError):
                print_document(
                    full_report(profile) if self._printed == "full" else first_screen(profile),
                    self._stderr,
                )
                self._stderr.write("\n")

    def _print_json(self, profiles: Sequence[Profile]) -> None:
        from pipeprof.store import dumps

        with suppress(OSError, ValueError):  # nobody may be there to read it
            sys.stdout.flush()
            click.echo(b"[" + b",".join(map(dumps, profiles)) + b"]", file=self._stdout)

    def _print_markdown(self, profiles: Sequence[Profile]) -> None:
        from pipeprof.report.document.build import full_report
        from pipeprof.report.markdown.render import render_markdown, under_heading
        from pipeprof.report.text import write_text

        reports = [
            under_heading(profile.name, render_markdown(full_report(profile)))
            for profile in profiles
        ]
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            write_text("\n".join(reports), self._stdout)

    def _save(self, profiles: Sequence[Profile]) -> list[Path]:
        from pipeprof.report.document.build import full_report

        saved: list[Path] = []
        try:
            if profiles:
                self._folder.mkdir(parents=True, exist_ok=True)
            for profile, name in zip(profiles, _file_names(profiles), strict=True):
                profile.save(self._folder / name)
                saved.append(self._shown_folder / name)
                if self._html:
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


def _rank() -> int | None:
    """Of this process among those that torchrun started."""
    rank = os.environ.get("RANK", "")
    return int(rank) if re.fullmatch("[0-9]{1,9}", rank) else None


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
