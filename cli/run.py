"""`pipeprof run`: run a training script as it is, and say what its loaders were waiting for."""

from __future__ import annotations

import atexit
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

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
    from pipeprof.loaders.live.view import Live

EXAMPLE = """\b
Examples:
  pipeprof run train.py --epochs 1
  pipeprof run --live train.py --epochs 1
  pipeprof run --set num_workers=8,prefetch_factor=4 train.py --epochs 1
  pipeprof run --set train.py:42:num_workers=8 -m package.train
  torchrun --nproc-per-node 8 -m pipeprof run train.py
"""


def settings(text: str) -> Override:
    """``num_workers=8``, ``train.py:42:num_workers=8,pin_memory=true``."""
    try:
        return parse_override(text)
    except UsageError as error:
        raise click.BadParameter(f"{error}.") from None


@click.command(epilog=EXAMPLE, context_settings={"allow_interspersed_args": False})
@click.option("-m", "is_module", is_flag=True,
              help="SCRIPT is a module, to be run as python -m does.")  # fmt: skip
@click.option("--set", "overrides", multiple=True, type=settings,
              metavar="[PLACE:]NAME=VALUE,…",
              help="Give every DataLoader these arguments instead of the script's own; with a "
              "place, as train.py:42, those made there. May be repeated.")  # fmt: skip
@click.option("--threshold", type=SHARE, default="5%", show_default=True,
              help="The starved share that counts as starved.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="pipeprof-run",
              show_default=True, help="Folder for the profiles, one for each loader.")  # fmt: skip
@click.option("--html", is_flag=True, help="Write a page for a browser beside each profile.")
@click.option("--quiet", is_flag=True, help="Save the profiles; say only what went wrong.")
@click.option("--live", is_flag=True,
              help="Show metrics on stderr during the run: a panel at the bottom of a terminal, "
              "elsewhere a line now and then.")  # fmt: skip
@click.option("--live-every", type=click.FloatRange(min=0, min_open=True), default=10.0,
              metavar="SECONDS", show_default=True,
              help="Between two lines of --live, where stderr is no terminal.")  # fmt: skip
@click.option("--whole", is_flag=True,
              help="Watch every batch also of loaders so fast that this costs some per cent; "
              "without it, stretches of their batches.")  # fmt: skip
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
    whole: bool,
    fail_if_starved: float | None,
    full: bool,
    markdown: bool,
    as_json: bool,
) -> NoReturn:
    """Run SCRIPT with its ARGS, and watch every DataLoader that it iterates.

    The script runs as under python itself, with its own exit code. At its end the verdict on each
    loader is printed to stderr, and its profile saved. With --json the profiles are printed to
    stdout, as an array, after whatever the script prints there; so is the report with --markdown.
    Nothing is said or saved of a script that is killed.
    """
    from pipeprof.cli.run_end import End, Printed
    from pipeprof.cli.script import find_program, run_program
    from pipeprof.loaders.autopatch.call_sites import CallSites
    from pipeprof.loaders.autopatch.session import Session

    refuse_clashes(markdown, as_json)
    program = find_program(script, is_module)
    printed: Printed = "full" if full else "report"
    if as_json or markdown:
        printed = "json" if as_json else "markdown"
    view = partial(_live_view, live_every) if live else None
    session = Session(CallSites(program.folder), overrides, view, whole)
    end = End(session, script, threshold, out, html, quiet, printed)
    # the first to be registered is the last to be called: after the script's own
    atexit.register(end.tell)
    session.install()
    ending = run_program(program, arguments)
    # not by returning: what the script has left of stdout is not ours to look after
    sys.exit(end.exit_code(ending, fail_if_starved))


def _live_view(line_s: float) -> Live:
    """Imported only now: it needs torch, which the script has imported by then."""
    from pipeprof.loaders.live.view import live_view

    view = live_view()
    view.line_s = line_s
    return view
