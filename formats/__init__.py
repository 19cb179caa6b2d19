"""The file formats, each a module of pure functions over bytes, loaded when first asked for."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from pipeprof.errors import FormatError, UsageError

if TYPE_CHECKING:
    from pipeprof.formats.base import Format

FORMATS = {
    "csv": "pipeprof.formats.csv.format",
    "parquet": "pipeprof.formats.parquet.format",
    "tfrecord": "pipeprof.formats.tfrecord.format",
    "arrow": "pipeprof.formats.arrow.format",
    "jsonl": "pipeprof.formats.jsonl.format",
    "webdataset": "pipeprof.formats.webdataset.format",
    "mds": "pipeprof.formats.mds.format",
    "lance": "pipeprof.formats.lance.format",
    "npy": "pipeprof.formats.npy.format",
    "images": "pipeprof.formats.images.format",
}
"""Maps the name of a format to the module that has it as ``FORMAT``."""

WRITTEN = tuple(name for name in FORMATS if name not in ("npy", "images"))
"""The formats that can be written."""

_SHARD = re.compile(r"-[0-9]+-of-[0-9]+(?=\.|$)")
_COMPRESSED = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""What streams of gzip and of zstd begin with."""
_LOOKS = (
    (b"\x1f\x8b", "is compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd"),
    (b"PK\x03\x04", "is a zip archive"),
    (b"ARROW1", "is an Arrow file"),
    (b"FEA1", "is a Feather file of version 1"),
    (b"Obj\x01", "is an Avro file"),
    (b"ORC", "is an ORC file"),
    (b"\xff\xfe", "is text in UTF-16"),
)


@cache
def get(name: str) -> Format:
    """Return the format of this name. Raises `UsageError`."""
    if name not in FORMATS:
        raise UsageError(f"{name!r} is not a format; choose one of {', '.join(FORMATS)}.")
    found: Format = import_module(FORMATS[name]).FORMAT
    return found


def detect(name: str, head: bytes, tail: bytes) -> Format:
    """Return the format of an object. Its first and last bytes (up to 4 KiB each) decide, then its
    name. Raises `FormatError` when the bytes contradict the name, or neither is known."""
    formats = [get(known) for known in FORMATS]
    for candidate in formats:
        if candidate.sniff(head, tail):
            return candidate
    plain_name = _SHARD.sub("", name.lower())
    named = next((each for each in formats if plain_name.endswith(each.suffixes)), None)
    if named is None:
        known = ", ".join(suffix for each in formats for suffix in each.suffixes[:1])
        raise FormatError(
            f"{name} {_look(head)}, and neither that nor its name tells a format that is read: "
            f"{', '.join(FORMATS)} (names end in {known})."
        )
    if head and not _may_be(named.name, head, tail):
        raise FormatError(
            f"{name} is named like {named.name}, but it is not: it {_look(head)}. "
            "Give it the name of what it is, or write it again."
        )
    return named


def _may_be(name: str, head: bytes, tail: bytes) -> bool:
    """Return whether bytes that are of no format for certain may be this one, whole or damaged."""
    if name == "parquet":
        return head.startswith(b"PAR1") or tail.endswith((b"PAR1", b"PARE"))
    if name == "arrow":
        return head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or tail.endswith(b"ARROW1")
    if name in ("csv", "jsonl", "webdataset", "mds") and head.startswith(_COMPRESSED):
        return True
    if name in ("csv", "jsonl"):
        return b"\0" not in head
    return _look(head) == "is of unknown content"


def _look(head: bytes) -> str:
    """Return what the first bytes seem to be, as words that follow a name."""
    if not head:
        return "is empty"
    for magic, look in _LOOKS:
        if head.startswith(magic):
            return look
    text = not re.search(rb"[\x00-\x08\x0e-\x1f]", head)
    return "is text" if text else "is of unknown content"
