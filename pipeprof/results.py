"""What a profile and a sweep can do with themselves.

The types of `pipeprof.model` import nothing of pipeprof, so their methods are bound here, when
pipeprof is imported. What a method needs is imported when it is called. Type checkers read the
declarations in the model.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeprof.model import Profile, SweepResult, TableName

if TYPE_CHECKING:
    from pipeprof.tables import Frame, Table

Result: TypeAlias = "Profile | SweepResult"


def metrics(profile: Profile, prefix: str = "pipeprof/") -> dict[str, float]:
    """Flat figures for whoever logs a run, such as ``pipeprof/starved_fraction``: times in
    seconds, rates per second, shares 0..1. What is not known is not among them."""
    from pipeprof.report.metrics import metrics

    return metrics(profile, prefix)


def profile_to_arrow(profile: Profile, table: TableName = "stages") -> Table:
    """``stages``, ``batches`` (the last of the run) or ``workers`` (their stages), as a table;
    units are in its columns' names, null is unknown. Raises `pipeprof.errors.UsageError`."""
    from pipeprof.tables import profile_table

    return profile_table(profile, table)


def profile_to_pandas(profile: Profile, table: TableName = "stages") -> Frame:
    """`to_arrow` as a DataFrame. Raises `pipeprof.errors.PipeprofError` without pandas."""
    from pipeprof.tables import as_pandas

    return as_pandas(profile.to_arrow(table))


def sweep_to_arrow(sweep: SweepResult) -> Table:
    """A row for each trial; units are in the columns' names, null is unknown."""
    from pipeprof.tables import trials_table

    return trials_table(sweep)


def sweep_to_pandas(sweep: SweepResult) -> Frame:
    """`to_arrow` as a DataFrame. Raises `pipeprof.errors.PipeprofError` without pandas."""
    from pipeprof.tables import as_pandas

    return as_pandas(sweep.to_arrow())


def save(result: Result, path: str | PathLike[str]) -> None:
    """Write as JSON, atomically. Raises `pipeprof.errors.OutputError`."""
    from pipeprof.store import save

    save(result, path)


def as_text(result: Result) -> str:
    """The first screen of its report: the answer alone."""
    from pipeprof.report.document.build import first_screen
    from pipeprof.report.terminal.render import render_terminal

    return render_terminal(first_screen(result))


def as_html(result: Result) -> str:
    """The whole report, for a notebook."""
    from pipeprof.report.document.build import full_report
    from pipeprof.report.notebook.render import render_notebook

    return render_notebook(full_report(result))


def print_in_ipython(result: Result, printer: Any, cycle: bool) -> None:
    """As `print` shows it: not all of its batches."""
    printer.text(str(result))


_OF_BOTH = {
    "save": save,
    "__str__": as_text,
    "_repr_html_": as_html,
    "_repr_pretty_": print_in_ipython,
}
METHODS = {
    Profile: {
        **_OF_BOTH,
        "metrics": metrics,
        "to_arrow": profile_to_arrow,
        "to_pandas": profile_to_pandas,
    },
    SweepResult: {**_OF_BOTH, "to_arrow": sweep_to_arrow, "to_pandas": sweep_to_pandas},
}
"""Type → name → what it does."""

for _kind, _methods in METHODS.items():
    for _name, _method in _methods.items():
        setattr(_kind, _name, _method)
