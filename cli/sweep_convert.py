"""The options of `pipeprof sweep` that try other formats and storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import SIZE
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pipeprof.model import ConversionSpec

_ROW_GROUPS = tuple(count * 2**20 for count in (1, 8, 64))
"""In RAM: what ``auto`` tries."""
_SAMPLE_BYTES = 256_000_000


def names(text: str) -> tuple[str, ...]:
    """``csv,parquet:zstd``, each once."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in found:
        raise click.BadParameter(f"{text!r} has an empty name between its commas.")
    return found


def sizes(text: str) -> tuple[int, ...]:
    """``8MiB,64MiB``, each once, the smallest first."""
    return tuple(sorted({SIZE(part) for part in text.split(",")}))


def row_groups(text: str) -> tuple[int, ...]:
    """``auto``, or sizes."""
    return _ROW_GROUPS if text == "auto" else sizes(text)


NAMES, SIZES, ROW_GROUPS = names, sizes, row_groups
names.__name__, sizes.__name__, row_groups.__name__ = "name,name,…", "size,size,…", "auto|size,…"

_OPTIONS = (
    click.option("--formats", type=NAMES, default=None,
                 help="What would converting bring? Write a sample of the data in these formats, "
                 "e.g. csv,parquet:zstd,tfrecord, and try each as well; it is removed "
                 "afterwards."),
    click.option("--storage", "storages", type=NAMES, default=None,
                 help="Where the sample is written: local (a folder beside --out), a folder, or "
                 "any URL that fsspec knows.  [default: local]"),
    click.option("--sample", "sample_bytes", type=SIZE, default=None,
                 help="The most that is taken of the data, from all over it, as it lies in RAM.  "
                 "[default: 256MB]"),
    click.option("--row-group", "row_group_bytes", type=ROW_GROUPS, default=None,
                 help="Row groups of Parquet to try, in RAM; auto: 1, 8 and 64 MiB."),
    click.option("--shard-size", "shard_bytes", type=SIZES, default=None,
                 help="Least file sizes to try, on storage."),
    click.option("--keep", is_flag=True, help="Leave what was written where it is."),
)  # fmt: skip


def conversion_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command's, each in the order of the help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def conversion_spec(
    formats: tuple[str, ...] | None,
    storages: tuple[str, ...] | None,
    sample_bytes: int | None,
    row_group_bytes: tuple[int, ...] | None,
    shard_bytes: tuple[int, ...] | None,
) -> ConversionSpec | None:
    """What was asked for; ``None`` without ``--formats``. Raises `UsageError`."""
    from pipeprof.model import ConversionSpec
    from pipeprof.storage.urls import redact

    if formats is None:
        given = {
            "--storage": storages, "--sample": sample_bytes,
            "--row-group": row_group_bytes, "--shard-size": shard_bytes,
        }  # fmt: skip
        alone = next((name for name, value in given.items() if value is not None), None)
        if alone:
            raise UsageError(f"{alone} is of use with --formats only; say which formats to try")
        return None
    return ConversionSpec(
        formats=formats,
        storages=tuple(map(redact, storages or ("local",))),
        sample_bytes=sample_bytes or _SAMPLE_BYTES,
        row_group_bytes=row_group_bytes or (),
        shard_bytes=shard_bytes or (),
    )
