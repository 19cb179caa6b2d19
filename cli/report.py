"""`pipeprof report`: show a saved profile or sweep."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.html_option import html_option, write_page
from pipeprof.cli.judge import fail_if_starved_option, judge
from pipeprof.cli.options import json_option

if TYPE_CHECKING:
    from pipeprof.model import Profile, SweepResult

EXAMPLE = """\b
Examples:
  pipeprof report run.json
  pipeprof report pipeprof-results/sweep-20260131-142501
  pipeprof report run.json --fail-if-starved 10%
  pipeprof report run.json --html run.html
  pipeprof report run.json --trace run.trace.json.gz
"""


@click.command(epilog=EXAMPLE)
@click.argument("file")
@html_option
@click.option("--trace", type=click.Path(path_type=Path), default=None, metavar="OUT",
              help="Write the last batches as a Chrome trace, for Perfetto; for TensorBoard's "
              "profiler plugin name its folder of logs.")  # fmt: skip
@fail_if_starved_option
@json_option
def command(
    file: str,
    html: Path | None,
    trace: Path | None,
    fail_if_starved: float | None,
    as_json: bool,
) -> None:
    """Show a saved profile or sweep: FILE, or a sweep's folder."""
    from pipeprof.report.terminal import print_report
    from pipeprof.store import dumps, load

    path = _locate(file)
    result = load(path)
    if html is not None:
        _refuse_itself(path, html)
        write_page(result, html)
    if trace is not None:
        _write_trace(result, path, trace)
    if as_json:
        click.echo(dumps(result), nl=False)
    elif html is None and trace is None:
        print_report(result)
    if fail_if_starved is not None:
        judge(result, str(path), fail_if_starved)


def _refuse_itself(path: Path, out: Path) -> None:
    """Raises `UsageError` where the report would take the place of what it tells of."""
    from pipeprof.errors import UsageError

    if os.path.isfile(out) and out.samefile(path):  # Path's own raises on long names
        raise UsageError(f"--html {out} is the file itself; name another.")


def _write_trace(result: Profile | SweepResult, path: Path, out: Path) -> None:
    """Raises `UsageError`, `OutputError`."""
    from pipeprof.errors import UsageError
    from pipeprof.model import Profile
    from pipeprof.report.trace import render_trace, tensorboard_name
    from pipeprof.store import write_atomically

    if not isinstance(result, Profile):
        raise UsageError(f"{path} is a sweep; name the profile of one of its trials.")
    if out.is_dir():
        out = out / tensorboard_name(result)
    data = render_trace(result, compressed=out.suffix == ".gz")
    write_atomically(out, data)
    click.echo(f"{out}: the last {len(result.batches.index):,} batches; open it in Perfetto "
               "(ui.perfetto.dev) or, in a folder of logs, in TensorBoard.", err=True)  # fmt: skip


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
