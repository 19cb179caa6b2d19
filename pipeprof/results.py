"""Bind the methods of profiles and sweeps, such as ``save`` and ``to_pandas``.

The types of `pipeprof.model` import no other part of pipeprof, so their methods are bound here when
pipeprof is imported. Each method imports what it needs when it is called. Type checkers read the
declarations in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeprof.model import Profile, SweepResult, TableName, TrainingJob, Tuning

if TYPE_CHECKING:
    from pipeprof.tables import Frame, Table

Result: TypeAlias = "Profile | SweepResult"


def metrics(profile: Profile, prefix: str = "pipeprof/") -> dict[str, float]:
    """Return flat figures for an experiment tracker, such as ``pipeprof/starved_fraction``. Times
    are in seconds, rates per second, shares 0..1. Unknown figures are left out."""
    from pipeprof.report.metrics import metrics

    return metrics(profile, prefix)


def job_metrics(job: TrainingJob, prefix: str = "pipeprof/") -> dict[str, float]:
    """Return flat figures of all ranks together, such as ``pipeprof/job/starved_fraction``."""
    from pipeprof.report.metrics import job_metrics

    return job_metrics(job, prefix)


def profile_to_arrow(profile: Profile, table: TableName = "stages") -> Table:
    """Return the ``stages``, the last ``batches`` or the ``workers`` (with their stages) as a
    table. Column names end in their units; null is unknown. Raises `pipeprof.errors.UsageError`."""
    from pipeprof.tables import profile_table

    return profile_table(profile, table)


def profile_to_pandas(profile: Profile, table: TableName = "stages") -> Frame:
    """Return the table of `to_arrow` as a DataFrame. Raises `pipeprof.errors.PipeprofError` without
    pandas."""
    from pipeprof.tables import as_pandas

    return as_pandas(profile.to_arrow(table))


def sweep_to_arrow(sweep: SweepResult) -> Table:
    """Return one row per trial. Column names end in their units; null is unknown."""
    from pipeprof.tables import trials_table

    return trials_table(sweep)


def sweep_to_pandas(sweep: SweepResult) -> Frame:
    """Return the table of `to_arrow` as a DataFrame. Raises `pipeprof.errors.PipeprofError` without
    pandas."""
    from pipeprof.tables import as_pandas

    return as_pandas(sweep.to_arrow())


def save(result: Result, path: str | PathLike[str]) -> None:
    """Write JSON atomically. Raises `pipeprof.errors.OutputError`."""
    from pipeprof.store import save

    save(result, path)


def as_text(result: Result) -> str:
    """Return the first screen of the report."""
    from pipeprof.report.document.build import first_screen
    from pipeprof.report.terminal.render import render_terminal

    return render_terminal(first_screen(result))


def as_html(result: Result) -> str:
    """Return the whole report for a notebook."""
    from pipeprof.report.document.build import full_report
    from pipeprof.report.notebook.render import render_notebook

    return render_notebook(full_report(result))


def tuning_as_text(tuning: Tuning) -> str:
    """Return what was tried, what it brought, and what stays."""
    from pipeprof.analyze.wording.tuning import tuning_text

    return tuning_text(tuning)


def print_in_ipython(result: Result | Tuning, printer: Any, cycle: bool) -> None:
    """Print the report instead of the ``repr``, which would list all batches."""
    printer.text(str(result))


_COMMON_METHODS: dict[str, Callable[..., Any]] = {
    "save": save,
    "__str__": as_text,
    "_repr_html_": as_html,
    "_repr_pretty_": print_in_ipython,
}
METHODS: dict[type, dict[str, Callable[..., Any]]] = {
    Profile: {
        **_COMMON_METHODS,
        "metrics": metrics,
        "to_arrow": profile_to_arrow,
        "to_pandas": profile_to_pandas,
    },
    SweepResult: {**_COMMON_METHODS, "to_arrow": sweep_to_arrow, "to_pandas": sweep_to_pandas},
    TrainingJob: {"metrics": job_metrics},
    Tuning: {"__str__": tuning_as_text, "_repr_pretty_": print_in_ipython},
}
"""Type → name of the method → function."""

for _kind, _methods in METHODS.items():
    for _name, _method in _methods.items():
        setattr(_kind, _name, _method)
