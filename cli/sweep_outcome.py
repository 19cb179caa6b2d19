"""Print how a sweep ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.output import print_markdown

if TYPE_CHECKING:
    from pipeprof.sweep.runner import SweepOutcome


def print_saved_trials(folder: Path) -> None:
    """Print how many trials are saved, before the error that ended the sweep."""
    from pipeprof.model import SweepResult
    from pipeprof.store import SWEEP_FILE, load

    saved = load(folder / SWEEP_FILE) if (folder / SWEEP_FILE).exists() else None
    if isinstance(saved, SweepResult):
        count = len(saved.trials)
        click.echo(
            f"pipeprof: {count} finished trials are saved; once the cause is fixed, continue with: "
            f"pipeprof sweep --resume {folder}",
            err=True,
        )


def print_outcome(
    outcome: SweepOutcome, folder: Path, full: bool, markdown: bool, as_json: bool
) -> None:
    """Print the result of a sweep as asked for, and how to continue one that stopped early."""
    from pipeprof.report.document.build import first_screen, full_report
    from pipeprof.report.terminal.render import print_document
    from pipeprof.store import dumps

    if as_json:
        click.echo(dumps(outcome.result), nl=False)
    elif markdown:
        print_markdown(full_report(outcome.result))
    elif outcome.result.trials:
        print_document(full_report(outcome.result) if full else first_screen(outcome.result))
        click.echo(
            f"\nSaved in {folder}; to show one trial:\n  pipeprof report {folder}/trial-000.json"
        )
    if outcome.stopped:
        done, planned = len(outcome.result.trials), outcome.result.planned
        click.echo(
            f"pipeprof: {outcome.stopped} after {done} of {planned} trials, which are saved; "
            f"continue with: pipeprof sweep --resume {folder}",
            err=True,
        )
