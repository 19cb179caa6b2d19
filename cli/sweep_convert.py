"""Define the options of `pipeprof sweep` that try other formats and storages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from pipeprof.cli.options import SIZE
from pipeprof.errors import UsageError

if TYPE_CHECKING:
    from pipeprof.model import ConversionSpec

_ROW_GROUPS = tuple(count * 2**20 for count in (1, 8, 64))
"""Sizes in RAM that ``auto`` tries."""
_SAMPLE_BYTES = 256_000_000


def names(text: str) -> tuple[str, ...]:
    """Parse names such as ``csv,parquet:zstd``, without duplicates."""
    unique = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in unique:
        raise click.BadParameter(f"{text!r} has an empty name between its commas.")
    return unique


def sizes(text: str) -> tuple[int, ...]:
    """Parse sizes such as ``8MiB,64MiB``, without duplicates, in ascending order."""
    return tuple(sorted({SIZE(part) for part in text.split(",")}))


def row_groups(text: str) -> tuple[int, ...]:
    """Parse ``auto`` or sizes."""
    return _ROW_GROUPS if text == "auto" else sizes(text)


NAMES, SIZES, ROW_GROUPS = names, sizes, row_groups
names.__name__, sizes.__name__, row_groups.__name__ = "name,name,…", "size,size,…", "auto|size,…"

_OPTIONS = (
    click.option("--formats", type=NAMES, default=None,
                 help="Also try a sample of the data in these formats, e.g. csv,parquet:zstd,"
                 "tfrecord, to show what conversion would bring. The sample is then removed."),
    click.option("--storage", "storages", type=NAMES, default=None,
                 help="Where to write the sample: local (a folder next to --out), another folder, "
                 "or any URL that fsspec supports.  [default: local]"),
    click.option("--sample", "sample_bytes", type=SIZE, default=None,
                 help="Maximum size in RAM of the sample, which is taken evenly from all data.  "
                 "[default: 256MB]"),
    click.option("--row-group", "row_group_bytes", type=ROW_GROUPS, default=None,
                 help="Sizes in RAM of Parquet row groups to try; auto: 1, 8 and 64 MiB."),
    click.option("--shard-size", "shard_bytes", type=SIZES, default=None,
                 help="Minimum file sizes on storage to try."),
    click.option("--keep", is_flag=True, help="Keep the written sample."),
)  # fmt: skip


def conversion_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to ``command`` in the order of the help."""
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
    """Return the requested conversions; ``None`` without ``--formats``. Raises `UsageError`."""
    from pipeprof.model import ConversionSpec
    from pipeprof.storage.urls import redact

    if formats is None:
        given = {
            "--storage": storages, "--sample": sample_bytes,
            "--row-group": row_group_bytes, "--shard-size": shard_bytes,
        }  # fmt: skip
        unused = next((name for name, value in given.items() if value is not None), None)
        if unused:
            raise UsageError(f"{unused} needs --formats; name the formats to try")
        return None
    return ConversionSpec(
        formats=formats,
        storages=tuple(map(redact, storages or ("local",))),
        sample_bytes=sample_bytes or _SAMPLE_BYTES,
        row_group_bytes=row_group_bytes or (),
        shard_bytes=shard_bytes or (),
    )
