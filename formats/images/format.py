"""Folders of images: each file is a row with the columns ``image`` and ``label``.

``image`` is the file's bytes, to be decoded by the user's ``transform`` or by a reader. ``label``
is the number of the class among all classes in alphabetical order, as in torchvision's ImageFolder.
The class is the first folder in which the paths of the images differ.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence

import pyarrow as pa

from pipeprof.errors import UsageError
from pipeprof.formats.base import (
    Decoding,
    Encoder,
    FilePlan,
    Format,
    Planning,
    ReadOptions,
    Split,
    fetch,
)
from pipeprof.formats.types import choose_columns, convert

_SCHEMA = pa.schema([("image", pa.binary()), ("label", pa.int64())])
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*")
_WEBP = b"RIFF", b"WEBP"
_WEBP_OFFSET = 8


class Images:
    """The format; see the module."""

    name = "images"
    suffixes: tuple[str, ...] = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
    compressions: tuple[str, ...] = ("none",)
    row_groups = False
    optional_columns = False
    cut_anywhere = False
    unforkable: str | None = None

    def sniff(self, head: bytes, tail: bytes) -> bool:
        if head.startswith(_WEBP[0]):
            return head[_WEBP_OFFSET:].startswith(_WEBP[1])
        return head.startswith(_MAGIC)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the only split. Nothing is read for it."""
        schema, _ = choose_columns(_SCHEMA, columns, types)
        ranges = ((0, size),) if "image" in schema.names else ()
        return FilePlan(schema, (Split(0, size, 1, ranges),), by_folder=True)
        yield  # it is a generator, as every plan

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        data = (yield from fetch(0, size)) if split.ranges else b""
        row = {"image": pa.array([data], pa.binary()), "label": pa.array([split.folder])}
        arrays = [convert(field.name, row[field.name], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def encoder(self, schema: pa.Schema, compression: str | None = None) -> Encoder:
        raise UsageError(
            "folders of images are read, but not written; choose another format, e.g. webdataset."
        )


def folder_numbers(paths: Sequence[str]) -> list[int]:
    """Return the number of each path's class.

    Examples:
        >>> folder_numbers(["/data/cat/1.jpg", "/data/dog/a/2.jpg", "/data/cat/3.jpg"])
        [0, 1, 0]
    """
    folders = [os.path.dirname(path) for path in paths]
    common = os.path.commonpath(folders) if folders else ""
    classes = [os.path.relpath(folder, common or ".").split(os.sep)[0] for folder in folders]
    numbers = {name: number for number, name in enumerate(sorted(set(classes)))}
    return [numbers[name] for name in classes]


FORMAT: Format = Images()
