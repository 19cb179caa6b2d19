"""Plan which copies of a sample there are and where they lie, and remove them."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from pipeprof import formats
from pipeprof.errors import UsageError
from pipeprof.formats.base import choose_compression
from pipeprof.log import suppress_and_log
from pipeprof.model import ConversionSpec, Copy
from pipeprof.storage.urls import filesystem, is_local, join, local_path
from pipeprof.storage.write import object_sizes, remove_object
from pipeprof.sweep.plan import LOCAL
from pipeprof.units import format_binary

_log = logging.getLogger(__name__)


def plan_copies(spec: ConversionSpec, roots: Mapping[str, str]) -> tuple[Copy, ...]:
    """Plan one copy for each format, storage and layout. ``roots`` maps a storage to the folder of
    its copies. Raises `UsageError` for an unknown format or compression."""
    copies: dict[str, Copy] = {}
    for storage, requested in product(spec.storages, spec.formats):
        for layout in _layouts(spec, requested):
            url = join(roots[storage], _folder_name(layout))
            copies.setdefault(url, replace(layout, url=url, storage=storage))
    return tuple(copies.values())


def parse_format(requested: str) -> tuple[str, str]:
    """Split ``"parquet:zstd"`` or ``"csv"`` into format and compression. Raises `UsageError`."""
    name, colon, compression = requested.partition(":")
    if name in formats.FORMATS and name not in formats.WRITTEN:
        raise UsageError(f"{name} can be read but not written; choose {', '.join(formats.WRITTEN)}")
    known = formats.get(name).compressions
    return name, choose_compression(name, known, compression if colon else None)


def _layouts(spec: ConversionSpec, requested: str) -> Iterator[Copy]:
    """Yield a copy for each row group size and file size, still without URL and storage."""
    name, compression = parse_format(requested)
    groups = spec.row_group_bytes if formats.get(name).row_groups else ()
    for group, shard in product(groups or (None,), spec.shard_bytes or (None,)):
        words = [requested]
        if group is not None:
            words.append(f"{format_binary(group)} groups")
        if shard is not None:
            words.append(f"{format_binary(shard)} files")
        label = ", ".join(words)
        yield Copy("", label, "", name, compression, row_group_bytes=group, shard_bytes=shard)


def _folder_name(copy: Copy) -> str:
    words = [copy.format, copy.compression]
    if copy.row_group_bytes:
        words.append(f"groups-{copy.row_group_bytes}")
    if copy.shard_bytes:
        words.append(f"files-{copy.shard_bytes}")
    return "-".join(words)


def new_root(storage: str, results: Path) -> str:
    """Return a new folder for the copies on ``storage``, named after the folder of ``results``."""
    if storage == LOCAL:
        return f"{os.fspath(results)}-data"
    return join(storage, f"pipeprof-{results.name}-{secrets.token_hex(4)}")


def remove_copy(url: str, options: Mapping[str, Any] | None = None) -> None:
    """Remove the folder of a copy and all that is in it. Raises `OutputError`."""
    for name in object_sizes(url, options):
        remove_object(join(url, name), options)
    remove_folder(url, options)


def remove_folder(url: str, options: Mapping[str, Any] | None = None) -> None:
    """Remove a folder if it is empty; object stores have no folders."""
    with suppress_and_log(_log, "the folder of a copy was not removed"):
        if is_local(url):
            os.rmdir(local_path(url))
        else:
            fs, path = filesystem(url, dict(options or {}))
            fs.rmdir(path)
