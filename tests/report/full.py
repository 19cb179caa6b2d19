"""Render the full report of a result in each medium, and find parts of the text."""

from __future__ import annotations

import re

from pipeprof.report.document.build import Result, full_report
from pipeprof.report.html.page import render_html
from pipeprof.report.markdown.render import render_markdown
from pipeprof.report.notebook.render import render_notebook
from pipeprof.report.terminal.render import WIDTH, render_terminal

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
"""A colour or style of the terminal."""


def full_text(result: Result, *, color: bool = False, width: int = WIDTH) -> str:
    return render_terminal(full_report(result), color=color, width=width)


def full_markdown(result: Result) -> str:
    return render_markdown(full_report(result))


def full_notebook(result: Result) -> str:
    return render_notebook(full_report(result))


def full_page(result: Result) -> str:
    return render_html(full_report(result))


def section(report: str, title: str) -> str:
    """Return ``report`` from the line that starts with ``title`` to the next heading."""
    found = re.search(rf"^{re.escape(title)}.*?(?=\n\n\S|\Z)", report, re.MULTILINE | re.DOTALL)
    assert found, f"{title} is not in the report"
    return found[0]
