"""Options of `pipeprof run`: what is shown while the script runs, and reported at its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from pipeprof.cli.options import SHARE, gathered
from pipeprof.cli.output import (
    fail_if_starved_option,
    full_option,
    json_option,
    markdown_option,
    refuse_clashes,
)
from pipeprof.storage.urls import is_local, local_path

if TYPE_CHECKING:
    from pipeprof.loaders.live.periodic import Periodic

OutputMode: TypeAlias = Literal["report", "full", "markdown", "json"]
"""Output at the end: the first screen or the full report to stderr; the others to stdout."""


@dataclass(frozen=True)
class LiveOptions:
    """What is shown and exported while the script runs."""

    live: bool
    live_every: float
    export: str | None
    export_every: float

    def outputs(self) -> Callable[[], Sequence[Periodic]] | None:
        """Return a function that makes the outputs; ``None`` where none are asked for. It needs
        torch, which the script has imported by then.

        Raises:
            UsageError: ``export`` names nothing known.
            OutputError: The file or the port of ``export`` cannot be used.
        """
        if self.export:
            from pipeprof.loaders.live.sinks import make_sink

            make_sink(self.export)  # or its error, before the script runs
        return partial(_make_outputs, self) if self.live or self.export else None


def _make_outputs(options: LiveOptions) -> Sequence[Periodic]:
    from pipeprof.loaders.live.outputs import make_outputs

    return make_outputs(options.live, options.export, options.export_every, options.live_every)


@dataclass(frozen=True)
class ReportOptions:
    """What is reported when the script has ended."""

    threshold: float
    out: str
    """A path or a URL, as the user wrote it."""
    html: bool
    full: bool
    markdown: bool
    as_json: bool
    quiet: bool
    fail_if_starved: float | None

    def __post_init__(self) -> None:
        refuse_clashes(self.markdown, self.as_json)

    @property
    def mode(self) -> OutputMode:
        if self.as_json or self.markdown:
            return "json" if self.as_json else "markdown"
        return "full" if self.full else "report"


def folder(text: str) -> str:
    """Return a path or a URL, and refuse a file."""
    if is_local(text) and os.path.isfile(local_path(text)):
        raise click.BadParameter(f"{text} is a file; name a folder.")
    return text


live_options = gathered(
    "live",
    LiveOptions,
    click.option("--live", is_flag=True,
                 help="Show metrics on stderr during the run: a panel at the bottom of a terminal, "
                 "otherwise a line from time to time."),
    click.option("--live-every", type=click.FloatRange(min=0, min_open=True), default=10.0,
                 metavar="SECONDS", show_default=True,
                 help="Time between two lines of --live where stderr is not a terminal."),
    click.option("--export", metavar="FORM",
                 help="Export the figures of the last seconds all the time: to jsonl[:FILE], "
                 "prometheus[:FILE or :PORT] or otlp[:URL]."),
    click.option("--export-every", type=click.FloatRange(min=0, min_open=True), default=15.0,
                 metavar="SECONDS", show_default=True, help="Time between two exports."),
)  # fmt: skip
report_options = gathered(
    "report",
    ReportOptions,
    click.option("--threshold", type=SHARE, default="5%", show_default=True,
                 help="Starved fraction from which a loader counts as starved."),
    fail_if_starved_option,
    click.option("--out", type=folder, default="pipeprof-run", metavar="FOLDER", show_default=True,
                 help="Folder for the profiles, one per loader: a path or a URL."),
    click.option("--html", is_flag=True, help="Also write each report as an HTML page."),
    click.option("--quiet", is_flag=True, help="Save the profiles, and print only errors."),
    full_option,
    markdown_option,
    json_option,
)  # fmt: skip
