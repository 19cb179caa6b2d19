"""Implement `pipeprof run`: run an unmodified training script and profile its loaders."""

from __future__ import annotations

import atexit
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipeprof.cli.run_options import LiveOptions, ReportOptions, live_options, report_options
from pipeprof.errors import UsageError
from pipeprof.loaders.autopatch.overrides import Override, parse_override

if TYPE_CHECKING:
    from pipeprof.loaders.tune.tune import TunedLoader

EXAMPLE = """\b
Examples:
  pipeprof run train.py --epochs 1
  pipeprof run --live train.py --epochs 1
  pipeprof run --tune --export prometheus:9464 train.py
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
@click.option("--whole", is_flag=True,
              help="Record every batch, also of fast loaders, where this costs a few percent. By "
              "default, windows of their batches are sampled.")  # fmt: skip
@click.option("--tune", is_flag=True,
              help="Change workers and prefetching while the script trains, and keep what is "
              "faster. Samples of a map-style data set stay in order.")  # fmt: skip
@click.option("--tuned", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Like --tune; FILE keeps what was found for the next run.")  # fmt: skip
@live_options
@report_options
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def command(
    script: str,
    arguments: tuple[str, ...],
    is_module: bool,
    overrides: tuple[Override, ...],
    whole: bool,
    tune: bool,
    tuned: Path | None,
    live: LiveOptions,
    report: ReportOptions,
) -> NoReturn:
    """Run SCRIPT with its ARGS, and profile every DataLoader that it iterates.

    The script runs as under python itself, and its exit code is kept. At its end, the verdict on
    each loader is printed to stderr and its profile is saved. With --json, an array of the profiles
    follows the script's own output on stdout; with --markdown, the reports do. A script that is
    killed leaves neither report nor profile.
    """
    from pipeprof.cli.run_end import RunReporter
    from pipeprof.cli.script import find_program, run_program
    from pipeprof.integrations import under_run
    from pipeprof.loaders.autopatch.call_sites import CallSites
    from pipeprof.loaders.autopatch.session import Session

    program = find_program(script, is_module)
    tuner = None
    if tune or tuned:
        if whole:
            raise UsageError("--tune cannot be combined with --whole: give one of them")
        # so that a loader which is made again starts with what was found for the last one
        folder = TemporaryDirectory(prefix="pipeprof-tuned-")
        tuner = partial(_tune, tuned or Path(folder.name) / "tuned.json", report.quiet)
    session = Session(CallSites(program.folder), overrides, live.outputs(), whole, tuner)
    reporter = RunReporter(session, script, report)
    # handlers run in reverse order, so this one runs after those of the script
    atexit.register(reporter.report)
    session.install()
    under_run.install(report.out.absolute())
    ending = run_program(program, arguments)
    # exit here: the caller would flush stdout, which the script may have closed
    sys.exit(reporter.exit_code(ending))


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
