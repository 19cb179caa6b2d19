"""`--markdown`: the report for a pull request or a ticket.

To stdout, as with `--json`: what it is for takes text from a pipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeprof.report.document.blocks import Document

markdown_option = click.option(
    "--markdown",
    is_flag=True,
    help="Print the whole report as GitHub's Markdown to stdout.",
)


def refuse_both(markdown: bool, as_json: bool) -> None:
    """Raises `UsageError`."""
    from pipeprof.errors import UsageError

    if markdown and as_json:
        raise UsageError("--markdown and --json both print to stdout; give one of them.")


def print_markdown(document: Document) -> None:
    from pipeprof.report.markdown.render import render_markdown
    from pipeprof.report.text import write_text

    write_text(render_markdown(document))
