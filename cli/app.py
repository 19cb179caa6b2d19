"""The `pipeprof` command: finds the subcommand, and turns errors into messages and exit codes."""

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
    "sweep": "Try loader settings on a data set; say which feeds the accelerator.",
    "run": "Run a training script as it is, and say what its loaders were waiting for.",
    "size": "Say what storage, hosts and network must give to feed N accelerators.",
    "probe": "Say what a file system or bucket can give: bandwidth, requests, latency.",
    "report": "Show a saved profile or sweep.",
    "compare": "Say what differs between runs, and whether that is real.",
    "trace": "Put a profile into a trace of torch.profiler.",
    "selfcheck": "Run loaders of known truth here, and compare what pipeprof says of them.",
}
"""Name → one line for ``--help``. Each lives in ``cli/NAME.py`` as ``command``."""


class LazyGroup(click.Group):
    """Lists commands without importing them: ``--help`` needs neither torch nor pyarrow."""

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
    epilog="Exit codes: 0 well, 1 failed, 2 wrong usage, 3 starved beyond --fail-if-starved "
    "or slower beyond --fail-if-slower.",
)
@click.version_option(__version__, "--version", prog_name="pipeprof")
def app() -> None:
    """Where every millisecond of a training batch goes, from storage to RAM to the GPU."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the one place where errors become messages and exit codes."""
    try:
        result: Any = app.main(arguments, prog_name="pipeprof", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except PipeprofError as error:
        _say(f"pipeprof: {error}")
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _say("pipeprof: interrupted.")
        return 130
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:
        _drop_output()
        where = f" ({error.filename})" if error.filename else ""
        _say(f"pipeprof: {error.strerror or error}{where}.")
        return 1


def _say(message: str) -> None:
    click.echo(message, err=True)


def _drop_output() -> None:
    """Forget what was not written: Python would try again at exit, and complain."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
