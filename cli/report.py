"""Implement `pipeprof report`, which shows a saved profile or sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeprof.cli.output import (
    fail_if_starved_option,
    full_option,
    html_option,
    json_option,
    markdown_option,
    print_markdown,
    raise_if_starved,
    refuse_clashes,
    write_page,
)
from pipeprof.cli.saved import locate, refuse_overwrite

if TYPE_CHECKING:
    from pipeprof.model import Profile, SweepResult

EXAMPLE = """\b
Examples:
  pipeprof report run.json
  pipeprof report run.json --full
  pipeprof report pipeprof-results/sweep-20260131-142501
  pipeprof report run.json --fail-if-starved 10%
  pipeprof report run.json --html run.html
  pipeprof report run.json --markdown >> $GITHUB_STEP_SUMMARY
  pipeprof report run.json --trace run.trace.json.gz
"""


@click.command(epilog=EXAMPLE)
@click.argument("file")
@full_option
@html_option
@markdown_option
@click.option("--trace", type=click.Path(path_type=Path), default=None, metavar="OUT",
              help="Write the last batches as a Chrome trace for Perfetto. For TensorBoard's "
              "profiler plugin, give its log folder.")  # fmt: skip
@fail_if_starved_option
@json_option
def command(
    file: str,
    html: Path | None,
    full: bool,
    markdown: bool,
    trace: Path | None,
    fail_if_starved: float | None,
    as_json: bool,
) -> None:
    """Show a saved profile or sweep. FILE is either of them, or the folder of a sweep."""
    from pipeprof.report.document.build import first_screen, full_report
    from pipeprof.report.terminal.render import print_document
    from pipeprof.store import dumps, load

    refuse_clashes(markdown, as_json)
    path = locate(file, "report")
    result = load(path)
    if html is not None:
        refuse_overwrite(path, html)
        write_page(full_report(result), html)
    if trace is not None:
        _write_trace(result, path, trace)
    if as_json:
        click.echo(dumps(result), nl=False)
    elif markdown:
        print_markdown(full_report(result))
    elif html is None and trace is None:
        print_document(full_report(result) if full else first_screen(result))
    if fail_if_starved is not None:
        raise_if_starved(result, str(path), fail_if_starved)


def _write_trace(result: Profile | SweepResult, path: Path, out: Path) -> None:
    """Write a Chrome trace of ``result`` to ``out``. Raises `UsageError` and `OutputError`."""
    from importlib.util import find_spec

    from pipeprof.errors import UsageError
    from pipeprof.model import Profile
    from pipeprof.report.trace.chrome import render_trace, tensorboard_name
    from pipeprof.store import write_atomically

    if not isinstance(result, Profile):
        raise UsageError(f"{path} is a sweep; name the profile of one of its trials.")
    if out.is_dir():
        out = out / tensorboard_name(result)
    data = render_trace(result, compressed=out.suffix == ".gz")
    write_atomically(out, data)
    message = f"{out}: the last {len(result.batches.index):,} batches; open it in Perfetto "
    message += "(ui.perfetto.dev) or, in a log folder, in TensorBoard"
    if find_spec("torch_tb_profiler") is None:
        message += ", whose plugin is not installed here: pip install 'pipeprof[tensorboard]'"
    click.echo(f"{message}.", err=True)
