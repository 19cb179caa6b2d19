"""Define the options that choose the output of a command, and write that output."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import SHARE
from pipeprof.errors import OutputError, ProfileError, StarvedError, UsageError

if TYPE_CHECKING:
    from pipeprof.model import Profile, SweepResult
    from pipeprof.report.document.blocks import Document

json_option = click.option("--json", "as_json", is_flag=True, help="Print only JSON to stdout.")
full_option = click.option(
    "--full",
    is_flag=True,
    help="Print the whole report to the terminal, not only its first screen.",
)
markdown_option = click.option(  # to stdout like JSON, because its consumers read a pipe
    "--markdown",
    is_flag=True,
    help="Print the whole report to stdout as GitHub Markdown.",
)
html_option = click.option(
    "--html",
    type=click.Path(path_type=Path),
    default=None,
    metavar="OUT",
    help="Write the report as one HTML page, which needs no network.",
)
fail_if_starved_option = click.option(
    "--fail-if-starved",
    type=SHARE,
    default=None,
    metavar="SHARE",
    help="Exit with 3 when the accelerator is starved for more than SHARE of the time. For a "
    "sweep, the best setting of each data set counts.",
)


def refuse_clashes(markdown: bool, as_json: bool, html: Path | None = None) -> None:
    """Check the output options before long work. Raises `UsageError`, and `OutputError` where
    ``html`` is a folder."""
    if markdown and as_json:
        raise UsageError("--markdown and --json both print to stdout; give one of them.")
    if html is not None and os.path.isdir(html):  # Path.is_dir raises on long names
        raise OutputError(f"--html {html} is a folder; name the file to write.")


def print_json(value: Any) -> None:
    """Print ``value`` to stdout as indented JSON."""
    import orjson

    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY))


def print_markdown(document: Document) -> None:
    """Print ``document`` to stdout as Markdown."""
    from pipeprof.report.markdown.render import render_markdown
    from pipeprof.report.text import write_text

    write_text(render_markdown(document))


def write_page(document: Document, out: Path, announce: bool = True) -> None:
    """Write ``document`` to ``out`` atomically as an HTML page. Raises `OutputError`."""
    refuse_clashes(markdown=False, as_json=False, html=out)
    from pipeprof.report.html.page import render_html
    from pipeprof.store import write_atomically

    write_atomically(out, render_html(document).encode())
    if announce:
        click.echo(f"{out}: open it in a browser.", err=True)


def raise_if_starved(result: Profile | SweepResult, name: str, limit: float) -> None:
    """Raise `StarvedError`, of exit code 3, when ``result`` is starved more than ``limit``."""
    from pipeprof.model import Profile
    from pipeprof.report.document.data_sets import own_data_sets
    from pipeprof.units import format_share

    if isinstance(result, Profile):
        if result.diagnosis.unjudged:
            raise ProfileError(f"{name} cannot be checked. {result.diagnosis.headline}")
        shares, at = {name: result.diagnosis.starved_fraction}, ""
    else:
        shares = {data.url: data.best.starved_fraction for data in own_data_sets(result)}
        at = " at its best setting"
    if not shares:
        raise ProfileError(f"{name} holds no trial yet, so there is nothing to check.")
    worst, share = max(shares.items(), key=lambda item: item[1])
    if share > limit:
        raise StarvedError(
            f"{worst}{at}: starved {format_share(share)} of the time, more than the "
            f"{format_share(limit)} allowed."
        )
