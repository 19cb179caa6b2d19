"""Parse option values that several commands share.

Each parser is a function that click calls with the text. The help shows the name of the function as
the name of the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from pipeprof.errors import UsageError
from pipeprof.model import ReadOptions
from pipeprof.units import parse_size


def size(text: str) -> int:
    """Parse bytes, at least 1: ``64KiB``, ``1.5GB``, ``4096``."""
    try:
        count = parse_size(text)
    except UsageError as error:
        raise click.BadParameter(f"{error}.") from None
    if count < 1:
        raise click.BadParameter(f"{text!r} is too small; the least is 1 byte.")
    return count


def share(text: str) -> float:
    """Parse a share from 0 to 1: ``5%``, ``0.05``."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a share; write it like 5% or 0.05.") from None
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{text!r} is not between 0% and 100%.")
    return value


def json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object, e.g. fsspec's storage options."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # the text is not repeated: it may hold a key
        raise click.BadParameter("it must be a JSON object, such as '{\"anon\": true}'.")
    return value


def int_list(least: int) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of whole numbers of at least ``least``, such as ``0,1,4``."""

    def parse(text: str) -> tuple[int, ...]:
        try:
            numbers = tuple(int(part) for part in text.split(","))
        except ValueError:
            raise click.BadParameter(
                f"{text!r} is not a list of whole numbers such as 1,2,4."
            ) from None
        if min(numbers) < least:
            raise click.BadParameter(f"{min(numbers)} is too small; the least is {least}.")
        return numbers

    parse.__name__ = "n,n,…"
    return parse


def local_cache(text: str) -> tuple[str, int | None]:
    """Parse a folder, or a folder and the size that a cache in it may have, ``/nvme:200GB``."""
    folder, _, limit = text.rpartition(":")
    return (folder, SIZE(limit)) if folder else (text, None)


SIZE, SHARE, INT_LIST, LOCAL_CACHE = size, share, int_list, local_cache
local_cache.__name__ = "folder[:size]"

_SIZES = {
    "split": "split_bytes",
    "block": "block_bytes",
    "gap": "gap_bytes",
    "request": "request_bytes",
}
_SWITCHES = {"ahead": "read_ahead", "direct": "direct"}
_SWITCH = {"": True, "yes": True, "no": False}
_EXAMPLE = "split=8MiB, block=4MiB, gap=64KiB, request=512KiB, depth=4, ahead=no, direct"


def read_options(text: str | ReadOptions) -> ReadOptions:
    """Parse read options such as ``depth=8,ahead=no``, see `pipeprof.model.ReadOptions`."""
    if isinstance(text, ReadOptions):  # click passes the default through here too
        return text
    options: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name in _SIZES:
            options[_SIZES[name]] = SIZE(value)
        elif name in _SWITCHES and value in _SWITCH:
            options[_SWITCHES[name]] = _SWITCH[value]
        elif name == "depth":
            options["queue_depth"] = max(INT_LIST(1)(value))
        else:
            raise click.BadParameter(f"{part!r} is not known; write any of {_EXAMPLE}.")
    return ReadOptions(**options)


read_options.__name__ = "name=value,…"
read_option = click.option(
    "--read", type=read_options, default=ReadOptions(), show_default=False,
    help=f"How to read from storage, any of {_EXAMPLE}. The defaults are as shown, but "
    "ahead=yes and direct=no.",
)  # fmt: skip
storage_options_option = click.option(
    "--storage-options", type=json_object, default=None,
    help="Options for fsspec, e.g. '{\"anon\": true}'. Never saved.",
)  # fmt: skip
s3_client_option = click.option(
    "--s3-client", type=click.Choice(["obstore", "pyarrow", "s3fs"]), default=None,
    help="Library that reads from S3.  [default: obstore, else s3fs]",
)  # fmt: skip


def add_client(options: dict[str, Any] | None, client: str | None) -> dict[str, Any] | None:
    """Return the storage options with the S3 client added, if one was chosen."""
    return {**(options or {}), "s3_client": client} if client else options


def split_client(
    client: str | None, options: dict[str, Any] | None
) -> tuple[str | None, dict[str, Any] | None]:
    """Return the S3 client from either argument, and the other storage options."""
    others = dict(options or {})
    named = others.pop("s3_client", None)
    return client or named, others or None


@contextmanager
def show_listing_progress(quiet: bool) -> Iterator[None]:
    """Print the progress of slow listings to stderr, unless ``quiet``."""
    from pipeprof.storage.progress import listing_watched

    def print_count(url: str, count: int) -> None:
        click.echo(f"{url}: {count:,} objects found so far", err=True)

    with nullcontext() if quiet else listing_watched(print_count):
        yield


def gathered(
    name: str, kind: type[Any], *options: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command ``options``, whose values it gets as one argument ``name``: the dataclass
    ``kind``, whose fields have their names."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathering(**values: Any) -> Any:
            gathered = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            return command(**values, **{name: gathered})

        for option in reversed(options):
            gathering = option(gathering)
        return gathering

    return decorate
