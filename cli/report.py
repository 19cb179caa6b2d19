"""`pipeprof report`: show a saved profile or sweep."""

from __future__ import annotations

from pathlib import Path

import click

from pipeprof.cli.judge import fail_if_starved_option, judge
from pipeprof.cli.options import json_option

EXAMPLE = """\b
Examples:
  pipeprof report run.json
  pipeprof report pipeprof-results/sweep-20260131-142501
  pipeprof report run.json --fail-if-starved 10%
"""


@click.command(epilog=EXAMPLE)
@click.argument("file")
@fail_if_starved_option
@json_option
def command(file: str, fail_if_starved: float | None, as_json: bool) -> None:
    """Show a saved profile or sweep: FILE, or a sweep's folder."""
    from pipeprof.report.terminal import print_report
    from pipeprof.store import dumps, load

    path = _locate(file)
    result = load(path)
    if as_json:
        click.echo(dumps(result), nl=False)
    else:
        print_report(result)
    if fail_if_starved is not None:
        judge(result, str(path), fail_if_starved)


def _locate(file: str) -> Path:
    """The file to open. Raises `UsageError`, `ProfileError`."""
    from pipeprof.errors import ProfileError, UsageError
    from pipeprof.storage.urls import is_local, local_path, redact
    from pipeprof.store import SWEEP_FILE

    if not is_local(file):
        raise UsageError(f"report reads local files; copy {redact(file)} to this machine first.")
    path = Path(local_path(file)) if file.startswith("file://") else Path(file)
    if not path.is_dir():
        return path
    if not (path / SWEEP_FILE).is_file():
        raise ProfileError(
            f"{path} is a folder without {SWEEP_FILE}; name a saved profile, or a sweep's folder."
        )
    return path / SWEEP_FILE
