"""Implement `pipeprof readers`: what can decode which formats here."""

from __future__ import annotations

import click

from pipeprof.cli.output import json_option, print_json

EXAMPLE = """\b
Examples:
  pipeprof readers --json
  pipeprof sweep data/csv --reader own,polars,python --workers 1,2
"""


@click.command(epilog=EXAMPLE)
@json_option
def command(as_json: bool) -> int:
    """List the libraries that can decode each format, and whether they are installed.

    `own` is what `open_dataset` uses by default: pyarrow, or a decoder of pipeprof where pyarrow
    has none. Another one is chosen by `pipeprof sweep --reader`, by `open_dataset(reader=...)`, or
    in front of a URL, as in polars::data/csv. It gets whole files.
    """
    from pipeprof.formats.readers import list_readers, packages

    found = list_readers()
    if as_json:
        print_json([each.to_dict() for each in found])
        return 0
    rows = [("reader", "version", "formats")]
    rows += [
        (each.name, each.version or "not installed", ", ".join(each.formats)) for each in found
    ]
    for name, version, formats in rows:
        click.echo(f"{name:<13}{version:<15}{formats}")
    missing = [packages(each.name)[0] for each in found if each.version is None]
    if missing:
        click.echo(f"\nInstall with: pip install {' '.join(missing)}")
    return 0
