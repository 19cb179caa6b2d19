"""The report for a terminal: plain lines, verdict first, colour only where it tells."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from rich.console import Console

from pipeprof.model import Profile, SweepResult
from pipeprof.report.base import Result
from pipeprof.report.layout import Page, to_ascii
from pipeprof.report.terminal_comparison import comparison_page
from pipeprof.report.terminal_profile import profile_page
from pipeprof.report.terminal_sweep import sweep_page

WIDTH = 100
_LEAST_WIDTH = 60


class TerminalRenderer:
    """Plain text of `WIDTH` columns."""

    name = "terminal"

    def render(self, result: Result) -> str:
        return render_text(result)


def render_text(result: Result, *, color: bool = False, width: int = WIDTH) -> str:
    """The report of ``result``, ``width`` columns wide; only code to paste may be wider."""
    page = Page(max(width, _LEAST_WIDTH), color)
    write_page(page, result)
    return page.text()


def write_page(page: Page, result: Result) -> None:
    """The report on any kind of page."""
    if isinstance(result, Profile):
        profile_page(page, result)
    elif isinstance(result, SweepResult):
        sweep_page(page, result)
    else:
        comparison_page(page, result)


def print_report(result: Result, file: TextIO | None = None) -> None:
    """Write the report to ``file`` (standard output), as what is on the other side can show it.

    Colour only on a terminal and without ``NO_COLOR``; ASCII where the encoding has no more.
    """
    print_page(lambda color, width: render_text(result, color=color, width=width), file)


def print_page(render: Callable[[bool, int], str], file: TextIO | None = None) -> None:
    """``render`` takes whether there is colour, and the width; at least `_LEAST_WIDTH`."""
    file = sys.stdout if file is None else file
    console = Console(file=file)
    color = console.color_system is not None and not console.no_color
    width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    text = render(color, max(width, _LEAST_WIDTH))
    try:
        text.encode(file.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_ascii(text)
    file.write(text)
    file.flush()
