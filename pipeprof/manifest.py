"""Define the manifest of a generated data set, which is stored with it and which loaders read
too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal

import msgspec
import orjson

from pipeprof.errors import FormatError
from pipeprof.units import format_bytes

MANIFEST: Final = "_pipeprof.json"
"""Name of the manifest file. It is written last, so a folder that has it holds a complete data
set."""
MANIFEST_SCHEMA: Final = "pipeprof.dataset/1"


@dataclass(frozen=True)
class ManifestFile:
    """One file of the data set."""

    name: str
    """Path relative to the manifest."""
    bytes: int
    """Size on storage; 0 in a plan, before the file is written."""
    rows: int


@dataclass(frozen=True)
class Manifest:
    """The description of a generated data set."""

    kind: str
    format: str
    compression: str
    """Name of the compression, as the format calls it."""
    seed: int
    generator: int
    """Version of the row generator: the same kind, seed and version give the same rows."""
    size_bytes: int
    """Requested size: approximately what the rows occupy in RAM."""
    rows: int
    shards: int
    columns: Mapping[str, str]
    """Column name → type, e.g. ``int64`` or ``list<int64>``, in the order of the data set."""
    files: tuple[ManifestFile, ...]
    schema: Literal["pipeprof.dataset/1"] = MANIFEST_SCHEMA

    @property
    def bytes(self) -> int:
        """Size on storage, without the manifest itself."""
        return sum(file.bytes for file in self.files)

    def __str__(self) -> str:
        compression = "no" if self.compression == "none" else self.compression
        size = format_bytes(self.size_bytes)
        return (
            f"{self.kind} in {self.format}, {compression} compression, seed {self.seed}, "
            f"{self.rows:,} rows in {self.shards} files, about {size} in RAM"
        )


def dumps(manifest: Manifest) -> bytes:
    """Return ``manifest`` as JSON."""
    return orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2) + b"\n"


def loads(data: bytes, where: str = "the data") -> Manifest:
    """Return the manifest in ``data``. Raises `FormatError` for anything else."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FormatError(
            f"{where} is not JSON, or is cut short ({error}); delete it together with the data "
            "set, and generate the data set again."
        ) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != MANIFEST_SCHEMA:
        raise FormatError(
            f'{where} is not the manifest of a data set: its "schema" is {schema!r}, where this '
            f"version of pipeprof reads {MANIFEST_SCHEMA!r}."
        )
    try:
        return msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        raise FormatError(
            f"{where} says it is {MANIFEST_SCHEMA}, but it is not: {error}."
        ) from None
