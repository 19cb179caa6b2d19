"""Write docs/reference/cli.md from the commands themselves: python scripts/cli_doc.py FILE"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from pipeprof.cli.app import app

_HEAD = """\
# Command line

The output of `--help` for each command, written by `make docs`. All commands accept `-h` too.
`python -m pipeprof` is the same as `pipeprof`.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed; standard error has the reason |
| 2 | wrong usage |
| 3 | starved beyond `--fail-if-starved`, or slower beyond `--fail-if-slower` |
| 130 | interrupted by Ctrl-C |

`pipeprof run` ends with the exit code of the script, unless `--fail-if-starved` asks for 3.
"""


def document() -> str:
    """Return the page."""
    root = click.Context(app, info_name="pipeprof")
    return "\n".join([_HEAD, *_commands(root, 2)])


def _commands(parent: click.Context, level: int) -> Iterator[str]:
    group = parent.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield from _command(context, level)
        if isinstance(command, click.Group):
            yield from _commands(context, level + 1)


def _command(context: click.Context, level: int) -> Iterator[str]:
    command = context.command
    yield f"{'#' * level} {context.command_path}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    yield f"{_cell(cleandoc(command.help or ''))}\n"
    yield from _options(command, context)
    examples = re.sub(r"\A\s*[\b]?\s*Examples:\n", "", command.epilog or "")
    if examples:
        yield f"```bash\n{cleandoc(examples)}\n```\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    shown = [each for each in command.get_params(context) if "--help" not in each.opts]
    records = [each.get_help_record(context) for each in shown]
    rows = [record for record in records if record is not None and record[1]]
    if rows:
        yield "| option | meaning |\n|---|---|"
        for names, meaning in rows:
            literal = names.replace("<", "&lt;").replace("|", "&#124;")
            yield f"| <code>{literal}</code> | {_cell(meaning, one_line=True)} |"
        yield ""


def _cell(text: str, *, one_line: bool = False) -> str:
    """Return ``text`` as Markdown with options as code and everything else escaped."""
    text = (
        text.replace("<", "&lt;")
        .replace("|", "\\|")
        .replace("*", "\\*")
        .replace("_", "\\_")
        .replace("[", "\\[")
    )
    text = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", text)
    return " ".join(text.split()) if one_line else text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
