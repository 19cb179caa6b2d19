"""The whole report of a result, in each medium."""

from __future__ import annotations

from pipeprof.report.document.build import Result, full_report
from pipeprof.report.html.page import render_html
from pipeprof.report.markdown.render import render_markdown
from pipeprof.report.notebook.render import render_notebook
from pipeprof.report.terminal.render import WIDTH, render_terminal


def full_text(result: Result, *, color: bool = False, width: int = WIDTH) -> str:
    return render_terminal(full_report(result), color=color, width=width)


def full_markdown(result: Result) -> str:
    return render_markdown(full_report(result))


def full_notebook(result: Result) -> str:
    return render_notebook(full_report(result))


def full_page(result: Result) -> str:
    return render_html(full_report(result))
