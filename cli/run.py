"""Implement `pipeprof run`: run an unmodified training script and profile its loaders."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import sys
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import NoReturn
from uuid import uuid4

import click

from pipeprof.cli.run_options import LiveOptions, ReportOptions, live_options, report_options
from pipeprof.errors import UsageError
from pipeprof.loaders.autopatch.overrides import Override, parse_override

EXAMPLE = """\b
Examples:
  pipeprof run train.py --epochs 1
  pipeprof run --live train.py --epochs 1
  pipeprof run --tune --export prometheus:9464 train.py
  pipeprof run --set num_workers=8,prefetch_factor=4 train.py --epochs 1
  pipeprof run --set train.py:42:num_workers=8 -m package.train
  torchrun --nproc-per-node 8 -m pipeprof run train.py
  pipeprof run -m torch.distributed.run --nproc-per-node 8 train.py
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
@click.option("--follow/--no-follow", default=True, show_default=True,
              help="Also profile the processes that SCRIPT starts.")  # fmt: skip
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
    follow: bool,
    live: LiveOptions,
    report: ReportOptions,
) -> NoReturn:
    """Run SCRIPT with its ARGS, and profile every DataLoader that it iterates.

    DataLoaders in processes that it starts are profiled as well. The script runs as under python
    itself, and its exit code is kept. At its end, the verdict on each loader is printed to stderr
    and its profile is saved. With --json, an array of the profiles follows the script's own output
    on stdout; with --markdown, the reports do. A script that is killed leaves neither report nor
    profile.
    """
    from pipeprof.cli.run_end import RunReporter
    from pipeprof.cli.run_followed import Once, leave_at_end
    from pipeprof.cli.run_note import make_scratch
    from pipeprof.cli.run_ray import follow_workers
    from pipeprof.cli.run_save import absolute
    from pipeprof.cli.run_settings import RunSettings
    from pipeprof.cli.script import find_program, run_program
    from pipeprof.integrations import under_run

    program = find_program(script, is_module)
    if whole and (tune or tuned):
        raise UsageError("--tune cannot be combined with --whole: give one of them")
    outputs = live.outputs()
    folder = os.path.join(gettempdir(), f"pipeprof-run-{uuid4()}")
    atexit.register(Once(partial(shutil.rmtree, folder, ignore_errors=True)))
    if tune and not tuned:
        # so that a loader which is made again starts with what was found for the last one
        make_scratch(folder)
        tuned = Path(folder, "tuned.json")
    settings = RunSettings(
        overrides=tuple(each.text for each in overrides),
        whole=whole,
        tuned=str(tuned.absolute()) if tuned else None,
        export=live.export,
        export_every=live.export_every,
        threshold=report.threshold,
        out=absolute(report.out),
        html=report.html,
        quiet=report.quiet,
        follow=follow,
        scratch=folder,
        host=socket.gethostname(),
    )
    session = settings.session(program.folder, outputs, lambda: leave_at_end(settings, session))
    reporter = RunReporter(session, script, report, settings)
    # handlers run in reverse order, so this one runs after those of the script
    atexit.register(reporter.report)
    session.install()
    under_run.install(settings.out)
    if follow:
        settings.hand_on()
        follow_workers(settings)
    ending = run_program(program, arguments)
    # exit here: the caller would flush stdout, which the script may have closed
    sys.exit(reporter.exit_code(ending))
