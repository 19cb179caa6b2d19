"""Copies of a sample: which there are to be, and that they are removed again."""

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
from pipeprof.formats.base import choose_compression
from pipeprof.log import suppress_and_log
from pipeprof.model import ConversionSpec, Copy
from pipeprof.storage.urls import filesystem, is_local, join, local_path
from pipeprof.storage.write import object_sizes, remove_object
from pipeprof.sweep.plan import LOCAL
from pipeprof.units import format_binary

_log = logging.getLogger(__name__)


def plan_copies(spec: ConversionSpec, roots: Mapping[str, str]) -> tuple[Copy, ...]:
    """One for each format, storage and layout. ``roots``: storage → the folder that takes its
    copies. Raises `UsageError` for a format or compression that there is not."""
    copies: dict[str, Copy] = {}
    for storage, asked in product(spec.storages, spec.formats):
        for layout in _layouts(spec, asked):
            url = join(roots[storage], _folder_name(layout))
            copies.setdefault(url, replace(layout, url=url, storage=storage))
    return tuple(copies.values())


def parse_format(asked: str) -> tuple[str, str]:
    """Format and compression of ``"parquet:zstd"``, ``"csv"``. Raises `UsageError`."""
    name, colon, compression = asked.partition(":")
    chosen = formats.get(name)
    return name, choose_compression(name, chosen.compressions, compression if colon else None)


def _layouts(spec: ConversionSpec, asked: str) -> Iterator[Copy]:
    name, compression = parse_format(asked)
    groups = spec.row_group_bytes if name == "parquet" else ()
    for group, shard in product(groups or (None,), spec.shard_bytes or (None,)):
        words = [asked]
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


def new_root(storage: str, beside: Path) -> str:
    """A folder that nothing else uses, for the copies on ``storage``."""
    if storage == LOCAL:
        return f"{os.fspath(beside)}-data"
    return join(storage, f"pipeprof-{beside.name}-{secrets.token_hex(4)}")


def remove_copy(url: str, options: Mapping[str, Any] | None = None) -> None:
    """All that lies in the folder, and the folder. Raises `OutputError`."""
    for name in object_sizes(url, options):
        remove_object(join(url, name), options)
    remove_folder(url, options)


def remove_folder(url: str, options: Mapping[str, Any] | None = None) -> None:
    """When it is empty; object stores have none."""
    with suppress_and_log(_log, "the folder of a copy was not removed"):
        if is_local(url):
            os.rmdir(local_path(url))
        else:
            fs, path = filesystem(url, dict(options or {}))
            fs.rmdir(path)
