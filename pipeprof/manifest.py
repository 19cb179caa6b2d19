"""What a generated data set is, as the file that lies beside it says: read by loaders too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal

import msgspec
import orjson

from pipeprof.errors import FormatError
from pipeprof.units import format_bytes

MANIFEST: Final = "_pipeprof.json"
"""File name. Written last: where it lies, the data set was whole."""
MANIFEST_SCHEMA: Final = "pipeprof.dataset/1"


@dataclass(frozen=True)
class ManifestFile:
    """One shard."""

    name: str
    """Relative to the manifest."""
    bytes: int
    """On storage; 0 in a plan, before the shard is written."""
    rows: int


@dataclass(frozen=True)
class Manifest:
    """A generated data set."""

    kind: str
    format: str
    compression: str
    """As the format names it."""
    seed: int
    generator: int
    """Version of the row generator: the same kind, seed and version give the same rows."""
    size_bytes: int
    """Asked for: about what the rows occupy in RAM."""
    rows: int
    shards: int
    columns: Mapping[str, str]
    """Name → type, e.g. ``int64`` or ``list<int64>``, in the order of the data set."""
    files: tuple[ManifestFile, ...]
    schema: Literal["pipeprof.dataset/1"] = MANIFEST_SCHEMA

    @property
    def bytes(self) -> int:
        """On storage, the manifest itself left out."""
        return sum(file.bytes for file in self.files)

    def __str__(self) -> str:
        compression = "no" if self.compression == "none" else self.compression
        size = format_bytes(self.size_bytes)
        return (
            f"{self.kind} in {self.format}, {compression} compression, seed {self.seed}, "
            f"{self.rows:,} rows in {self.shards} files, about {size} in RAM"
        )


def dumps(manifest: Manifest) -> bytes:
    return orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2) + b"\n"


def loads(data: bytes, where: str = "the data") -> Manifest:
    """Raises `FormatError` when ``data`` is anything but a manifest of this version."""
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
