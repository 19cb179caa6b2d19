"""`pipeprof report`: show a saved profile or sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.options import SHARE, json_option

if TYPE_CHECKING:
    from pipeprof.model import Profile, SweepResult

EXAMPLE = """\b
Examples:
  pipeprof report run.json
  pipeprof report pipeprof-results/sweep-20260131-142501
  pipeprof report run.json --fail-if-starved 10%
"""


@click.command(epilog=EXAMPLE)
@click.argument("file")
@click.option("--fail-if-starved", type=SHARE, default=None, metavar="SHARE",
              help="Exit with 3 when the accelerator is starved more; of a sweep, when a data "
              "set's best setting is.")  # fmt: skip
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
        _judge(result, path, fail_if_starved)


def _locate(file: str) -> Path:
    """The file to open. Raises `UsageError`, `ProfileError`."""
    from pipeprof.errors import ProfileError, UsageError
    from pipeprof.storage.urls import is_local, local_path, redact

    if not is_local(file):
        raise UsageError(f"report reads local files; copy {redact(file)} to this machine first.")
    path = Path(local_path(file)) if file.startswith("file://") else Path(file)
    if not path.is_dir():
        return path
    from pipeprof.sweep.run import SWEEP_FILE

    if not (path / SWEEP_FILE).is_file():
        raise ProfileError(
            f"{path} is a folder without {SWEEP_FILE}; name a saved profile, or a sweep's folder."
        )
    return path / SWEEP_FILE


def _judge(result: Profile | SweepResult, path: Path, limit: float) -> None:
    """Raises `StarvedError` when ``result`` is starved more than ``limit``."""
    from pipeprof.errors import ProfileError, StarvedError
    from pipeprof.model import Profile
    from pipeprof.report.data_sets import data_sets
    from pipeprof.units import format_share

    if isinstance(result, Profile):
        shares = {str(path): result.diagnosis.starved_fraction}
    else:
        shares = {data.url: data.best.starved_fraction for data in data_sets(result)}
    if not shares:
        raise ProfileError(f"{path} holds no trial yet, so nothing can be judged.")
    name, share = max(shares.items(), key=lambda item: item[1])
    if share > limit:
        at = "" if isinstance(result, Profile) else " at its best setting"
        raise StarvedError(
            f"{name}{at}: starved {format_share(share)} of the time, more than the "
            f"{format_share(limit)} allowed."
        )
