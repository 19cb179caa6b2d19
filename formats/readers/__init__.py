"""Other libraries that decode objects, each a module that is loaded when it is first asked for.

`polars::URL` reads with a library what `URL` reads with the format's own decoder.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pipeprof.errors import UsageError
from pipeprof.formats import FORMATS
from pipeprof.version import __version__

if TYPE_CHECKING:
    from pipeprof.formats.base import Decoder, Format
    from pipeprof.formats.readers.base import ImageReader, Reader

OWN = "own"
"""The name of the formats' own decoders."""
READERS = {
    "polars": ("csv", "parquet", "arrow", "jsonl"),
    "pandas": ("csv", "jsonl"),
    "duckdb": ("csv", "parquet", "jsonl"),
    "datasets": ("csv", "parquet", "arrow", "jsonl"),
    "python": ("csv", "jsonl", "webdataset"),
    "tf.data": ("tfrecord",),
    "tfrecord": ("tfrecord",),
    "webdataset": ("webdataset",),
    "pillow": ("images",),
    "simplejpeg": ("images",),
}
"""Reader → the formats that it knows. `pipeprof.formats.readers.by_NAME` has it as ``READER``."""
_PACKAGES = {"tf.data": ("tensorflow", "tensorflow-cpu")}
"""Packages of which one has the reader, where they are not called as it is."""
SEPARATOR = "::"


@dataclass(frozen=True)
class ReaderInfo:
    """A reader, and whether it can be used."""

    name: str
    version: str | None
    """The version of its library; ``None`` where it is not installed."""
    formats: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def list_readers() -> list[ReaderInfo]:
    """Return the formats' own decoders, and all readers. Nothing is imported."""
    own = ReaderInfo(OWN, __version__, tuple(FORMATS))
    return [
        own, *(ReaderInfo(name, installed_version(name), known) for name, known in READERS.items())
    ]  # fmt: skip


def each_reader(url: str, names: Sequence[str]) -> Iterator[str]:
    """Yield ``url`` for each of these readers. Raises `UsageError` for an unknown one."""
    for name in names:
        if name != OWN:
            get(name)
        yield url if name == OWN else f"{name}{SEPARATOR}{url}"


@cache
def get(name: str) -> Reader | ImageReader:
    """Return the reader of this name. Raises `UsageError` for an unknown one, and one whose library
    is not installed."""
    if name not in READERS:
        raise UsageError(f"{name!r} is not a reader; choose one of {', '.join([OWN, *READERS])}.")
    if installed_version(name) is None:
        package = packages(name)[0]
        raise UsageError(
            f"the reader {name} is not installed; pip install {package}, or pipeprof[{package}]."
        )
    module = import_module(f"pipeprof.formats.readers.by_{name.replace('.', '_')}")
    found: Reader | ImageReader = module.READER
    return found


def packages(name: str) -> tuple[str, ...]:
    """Return the packages of which one has a reader; the first is the usual one."""
    return _PACKAGES.get(name, (name,))


def installed_version(name: str) -> str | None:
    """Return the version of a reader's library; ``None`` where it is not installed. Imports
    nothing."""
    if name == "python":
        return platform.python_version()
    for package in packages(name):
        with suppress(PackageNotFoundError):
            return version(package)
    return None


def split_reader(url: str) -> tuple[str | None, str]:
    """Return the reader that ``url`` names, if any, and the URL without it.

    Examples:
        >>> split_reader("polars::s3://bucket/data")
        ('polars', 's3://bucket/data')
    """
    name, separator, rest = url.partition(SEPARATOR)
    if separator and name in READERS:
        return name, rest
    return None, rest if separator and name == OWN else url


def read_by(reader: str | None, chosen: Format) -> Decoder:
    """Return ``chosen`` such that ``reader`` decodes its objects. Raises `UsageError` where it does
    not know the format."""
    if reader is None:
        return chosen
    if chosen.name not in READERS[reader]:
        able = [name for name, formats in READERS.items() if chosen.name in formats]
        raise UsageError(
            f"the reader {reader} does not know {chosen.name}; "
            f"{', '.join([OWN, *able])} {'do' if able else 'does'}."
        )
    found: Any = get(reader)
    if chosen.name == "images":
        from pipeprof.formats.readers.decoded_images import DecodedImages

        return DecodedImages(found)
    from pipeprof.formats.readers.whole_objects import WholeObjects

    return WholeObjects(chosen, found)
