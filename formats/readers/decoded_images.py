"""Folders of images, each decoded into pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeprof.errors import CorruptData
from pipeprof.formats.base import Decoding, FilePlan, Planning, ReadOptions, Split, fetch
from pipeprof.formats.readers.base import ImageReader, unforkable
from pipeprof.formats.types import choose_columns, convert, first_line

_SCHEMA = pa.schema([
    ("image", pa.list_(pa.uint8())), ("height", pa.int64()), ("width", pa.int64()),
    ("label", pa.int64()),
])  # fmt: skip


@dataclass(frozen=True)
class DecodedImages:
    """The format `images`, where ``image`` is not a file's bytes but its pixels: ``height`` rows of
    ``width`` times red, green and blue. They are not scaled, and not turned as EXIF may ask."""

    reader: ImageReader
    name = "images"

    @property
    def unforkable(self) -> str | None:
        return unforkable(self.reader)

    def plan(
        self,
        size: int,
        columns: Sequence[str] | None,
        types: Mapping[str, pa.DataType],
        options: ReadOptions,
    ) -> Planning:
        """Plan the only split. Nothing is read for it."""
        schema, _ = choose_columns(_SCHEMA, columns, types)
        ranges = ((0, size),) if schema.names != ["label"] else ()
        return FilePlan(schema, (Split(0, size, 1, ranges),), by_folder=True)
        yield  # it is a generator, as every plan

    def decode(self, size: int, split: Split, schema: pa.Schema, options: ReadOptions) -> Decoding:
        row = {"label": pa.array([split.folder])}
        if split.ranges:
            row |= self._pixels((yield from fetch(0, size)))
        arrays = [convert(field.name, row[field.name], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _pixels(self, data: bytes | bytearray | memoryview) -> dict[str, pa.Array]:
        try:
            pixels = self.reader.pixels(data)
        except Exception as error:  # each library has errors of its own
            raise CorruptData(
                f"{self.reader.name} cannot read it ({type(error).__name__}: {first_line(error)})."
            ) from error
        height, width, _ = pixels.shape
        image = pa.ListArray.from_arrays([0, pixels.size], pa.array(pixels.reshape(-1)))
        return {"image": image, "height": pa.array([height]), "width": pa.array([width])}
