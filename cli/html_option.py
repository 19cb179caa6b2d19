"""`--html OUT`: the report as a page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pipeprof.report.document.blocks import Document

html_option = click.option(
    "--html",
    type=click.Path(path_type=Path),
    default=None,
    metavar="OUT",
    help="Write the report as one page for a browser, which needs no network.",
)


def refuse_folder(out: Path) -> None:
    """Before long work. Raises `OutputError`."""
    from pipeprof.errors import OutputError

    if os.path.isdir(out):  # Path's own raises on long names
        raise OutputError(f"--html {out} is a folder; name the file to write.")


def write_page(document: Document, out: Path, say: bool = True) -> None:
    """Whole or not at all. Raises `OutputError`."""
    refuse_folder(out)
    from pipeprof.report.html.page import render_html
    from pipeprof.store import write_atomically

    write_atomically(out, render_html(document).encode())
    if say:
        click.echo(f"{out}: open it in a browser.", err=True)
