"""Decode JPEG by simplejpeg, whose packages bring libjpeg-turbo along."""

from __future__ import annotations

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import ImageReader, Pixels


class SimpleJpeg:
    """The reader; see the module."""

    name = module = "simplejpeg"
    fork_safe = True

    def pixels(self, data: Buffer) -> Pixels:
        import simplejpeg

        pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB")
        return pixels


READER: ImageReader = SimpleJpeg()
