"""`--full`: the whole report where else its first screen is shown."""

from __future__ import annotations

import click

full_option = click.option(
    "--full",
    is_flag=True,
    help="Print the whole report to the terminal, not its first screen alone.",
)
