"""`--markdown`: the report for a pull request or a ticket.

To stdout, as with `--json`: what it is for takes text from a pipe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeprof.report.base import Result
    from pipeprof.report.layout import Page

markdown_option = click.option(
    "--markdown",
    is_flag=True,
    help="Print the report as GitHub's Markdown to stdout.",
)


def refuse_both(markdown: bool, as_json: bool) -> None:
    """Raises `UsageError`."""
    from pipeprof.errors import UsageError

    if markdown and as_json:
        raise UsageError("--markdown and --json both print to stdout; give one of them.")


def print_markdown(result: Result) -> None:
    from pipeprof.report.terminal import write_page

    print_written(lambda page: write_page(page, result))


def print_written(write: Callable[[Page], None]) -> None:
    """Whatever is written on a page."""
    from pipeprof.report.markdown import markdown_of
    from pipeprof.report.terminal import print_page

    print_page(lambda _color, _width: markdown_of(write))
