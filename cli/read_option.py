"""``--read``: how bytes are asked of storage, in one option."""

from __future__ import annotations

from typing import Any

import click

from pipeprof.cli.options import INT_LIST, SIZE
from pipeprof.model import ReadOptions

_SIZES = {
    "split": "split_bytes",
    "block": "block_bytes",
    "gap": "gap_bytes",
    "request": "request_bytes",
}
_SWITCHES = {"ahead": "read_ahead", "direct": "direct"}
_SWITCH = {"": True, "yes": True, "no": False}
_EXAMPLE = "split=8MiB, block=4MiB, gap=64KiB, request=512KiB, depth=4, ahead=no, direct"


def parse(text: str | ReadOptions) -> ReadOptions:
    """``depth=8,ahead=no``: see `pipeprof.model.ReadOptions`."""
    if isinstance(text, ReadOptions):  # click hands the default over too
        return text
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name in _SIZES:
            found[_SIZES[name]] = SIZE(value)
        elif name in _SWITCHES and value in _SWITCH:
            found[_SWITCHES[name]] = _SWITCH[value]
        elif name == "depth":
            found["queue_depth"] = max(INT_LIST(1)(value))
        else:
            raise click.BadParameter(f"{part!r} is not known; write any of {_EXAMPLE}.")
    return ReadOptions(**found)


parse.__name__ = "name=value,…"
read_option = click.option(
    "--read", type=parse, default=ReadOptions(), show_default=False,
    help=f"How bytes are asked of storage, any of {_EXAMPLE}; the values are the defaults, but for "
    "the last two.",
)  # fmt: skip
