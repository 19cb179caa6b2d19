"""Implement `pipeprof run`: run an unmodified training script and profile its loaders."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipeprof.cli.options import SHARE
from pipeprof.cli.output import (
    fail_if_starved_option,
    full_option,
    json_option,
    markdown_option,
    refuse_clashes,
)
from pipeprof.errors import UsageError
from pipeprof.loaders.autopatch.overrides import Override, parse_override

if TYPE_CHECKING:
    from pipeprof.loaders.live.periodic import Periodic
    from pipeprof.loaders.tune.tune import TunedLoader

EXAMPLE = """\b
Examples:
  pipeprof run train.py --epochs 1
  pipeprof run --live train.py --epochs 1
  pipeprof run --tune train.py
  pipeprof run --set num_workers=8,prefetch_factor=4 train.py --epochs 1
  pipeprof run --set train.py:42:num_workers=8 -m package.train
  torchrun --nproc-per-node 8 -m pipeprof run train.py
"""


def settings(text: str) -> Override:
    """Parse ``num_workers=8`` or ``train.py:42:num_workers=8,pin_memory=true``."""
    try:
        return parse_override(text)
    except UsageError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command(epilog=EXAMPLE, context_settings={"allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True,
              help="Run SCRIPT as a module, like python -m.")  # fmt: skip
@click.option("--set", "overrides", multiple=True, type=settings,
              metavar="[PLACE:]NAME=VALUE,…",
              help="Override these arguments of every DataLoader. With a place such as "
              "train.py:42, only of those created there. May be repeated.")  # fmt: skip
@click.option("--threshold", type=SHARE, default="5%", show_default=True,
              help="Starved fraction from which a loader counts as starved.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="pipeprof-run",
              show_default=True, help="Folder for the profiles, one per loader.")  # fmt: skip
@click.option("--html", is_flag=True, help="Also write each report as an HTML page.")
@click.option("--quiet", is_flag=True, help="Save the profiles, and print only errors.")
@click.option("--live", is_flag=True,
              help="Show metrics on stderr during the run: a panel at the bottom of a terminal, "
              "otherwise a line from time to time.")  # fmt: skip
@click.option("--live-every", type=click.FloatRange(min=0, min_open=True), default=10.0,
              metavar="SECONDS", show_default=True,
              help="Time between two lines of --live where stderr is not a terminal.")  # fmt: skip
@click.option("--export", metavar="FORM",
              help="Export the figures of the last seconds all the time: to jsonl[:FILE], "
              "prometheus[:FILE or :PORT] or otlp[:URL].")  # fmt: skip
@click.option("--export-every", type=click.FloatRange(min=0, min_open=True), default=15.0,
              metavar="SECONDS", show_default=True, help="Time between two exports.")  # fmt: skip
@click.option("--whole", is_flag=True,
              help="Record every batch, also of fast loaders, where this costs a few percent. By "
              "default, windows of their batches are sampled.")  # fmt: skip
@click.option("--tune", is_flag=True,
              help="Change workers and prefetching while the script trains, and keep what is "
              "faster. Samples of a map-style data set stay in order.")  # fmt: skip
@click.option("--tuned", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Like --tune; FILE keeps what was found for the next run.")  # fmt: skip
@fail_if_starved_option
@full_option
@markdown_option
@json_option
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def command(
    script: str,
    arguments: tuple[str, ...],
    is_module: bool,
    overrides: tuple[Override, ...],
    threshold: float,
    out: Path,
    html: bool,
    quiet: bool,
    live: bool,
    live_every: float,
    export: str | None,
    export_every: float,
    whole: bool,
    tune: bool,
    tuned: Path | None,
    fail_if_starved: float | None,
    full: bool,
    markdown: bool,
    as_json: bool,
) -> NoReturn:
    """Run SCRIPT with its ARGS, and profile every DataLoader that it iterates.

    The script runs as under python itself, and its exit code is kept. At its end, the verdict on
    each loader is printed to stderr and its profile is saved. With --json, an array of the profiles
    follows the script's own output on stdout; with --markdown, the reports do. A script that is
    killed leaves neither report nor profile.
    """
    from pipeprof.cli.run_end import OutputMode, RunReporter
    from pipeprof.cli.script import find_program, run_program
    from pipeprof.integrations import under_run
    from pipeprof.loaders.autopatch.call_sites import CallSites
    from pipeprof.loaders.autopatch.session import Session

    refuse_clashes(markdown, as_json)
    program = find_program(script, is_module)
    mode: OutputMode = "full" if full else "report"
    if as_json or markdown:
        mode = "json" if as_json else "markdown"
    view: Callable[[], Periodic] | None = partial(_live_view, live_every) if live else None
    if (tune or tuned) and (live or whole or export):
        raise UsageError(
            "--tune cannot be combined with --live, --export or --whole: give one of them"
        )
    if export and live:
        raise UsageError("--export cannot be combined with --live: give one of them")
    if export:
        from pipeprof.loaders.live.sinks import make_sink

        make_sink(export)  # or its error, before the script runs
        view = partial(_exporter, export, export_every)
    tuner = None
    if tune or tuned:
        # so that a loader which is made again starts with what was found for the last one
        folder = TemporaryDirectory(prefix="pipeprof-tuned-")
        tuner = partial(_tune, tuned or Path(folder.name) / "tuned.json", quiet)
    session = Session(CallSites(program.folder), overrides, view, whole, tuner)
    reporter = RunReporter(session, script, threshold, out, html, quiet, mode)
    # handlers run in reverse order, so this one runs after those of the script
    atexit.register(reporter.report)
    session.install()
    under_run.install(out.absolute())
    ending = run_program(program, arguments)
    # exit here: the caller would flush stdout, which the script may have closed
    sys.exit(reporter.exit_code(ending, fail_if_starved))


def _tune(file: Path, quiet: bool, name: str, loader: Any) -> TunedLoader:
    """Tune ``loader``, and say what will not stay the same. This imports torch, which the script
    has imported by then."""
    from pipeprof.loaders.tune.tune import tune

    tuned = tune(loader, tuned=file)
    tuning = tuned.tuning()
    if tuning.state != "off" and not quiet:
        for note in tuning.notes:
            click.echo(f"pipeprof: {name}, to be tuned: {note}", err=True)
    return tuned


def _exporter(export: str, every_s: float) -> Periodic:
    """Return the exporter of all loaders. It needs torch, which the script has imported by then."""
    from pipeprof.loaders.live.exporter import exporter

    return exporter(export, every_s)


def _live_view(line_s: float) -> Periodic:
    """Create the live view. It needs torch, which the script has imported by then."""
    from pipeprof.loaders.live.view import live_view

    view = live_view()
    view.line_s = line_s
    return view
