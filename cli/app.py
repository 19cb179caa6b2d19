"""Dispatch the `pipeprof` command, and turn errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from pipeprof.errors import PipeprofError
from pipeprof.version import __version__

COMMANDS = {
    "generate": "Write a seeded data set of any size, in any format, to any storage.",
    "sweep": "Try loader settings on a data set, and report which one feeds the accelerator.",
    "run": "Run an unmodified training script, and report what its loaders waited for.",
    "readers": "List the libraries that can decode each format.",
    "size": "Compute the storage, hosts and network that N accelerators need.",
    "probe": "Measure the bandwidth, request rate and latency of a file system or bucket.",
    "report": "Show a saved profile or sweep.",
    "compare": "Compare runs, and say which differences are more than chance.",
    "gather": "Join the profiles of a job's ranks, and report who holds the job up.",
    "trace": "Add a profile to a trace of torch.profiler.",
    "selfcheck": "Check the figures of pipeprof on this machine with loaders of known behaviour.",
}
"""Name → one line for ``--help``. The module ``cli/NAME.py`` defines each as ``command``."""


class LazyGroup(click.Group):
    """List commands without importing them: ``--help`` needs neither torch nor pyarrow."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"pipeprof.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 failure, 2 wrong usage, 3 starved beyond --fail-if-starved "
    "or slower beyond --fail-if-slower.",
)
@click.version_option(__version__, "--version", prog_name="pipeprof")
def app() -> None:
    """Show where every millisecond of a training batch goes, from storage to RAM to the GPU."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code. Errors become messages only here."""
    try:
        result: Any = app.main(arguments, prog_name="pipeprof", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except PipeprofError as error:
        _print_error(f"pipeprof: {error}")
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _print_error("pipeprof: interrupted.")
        return 130
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        where = f" ({error.filename})" if error.filename else ""
        _print_error(f"pipeprof: {error.strerror or error}{where}.")
        return 1


def _print_error(message: str) -> None:
    click.echo(message, err=True)


def _drop_output() -> None:
    """Discard unwritten output, which Python would try to write again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
