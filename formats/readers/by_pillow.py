"""Decode images by Pillow."""

from __future__ import annotations

import io

import numpy as np

from pipeprof.formats.base import Buffer
from pipeprof.formats.readers.base import ImageReader, Pixels


class Pillow:
    """The reader; see the module."""

    name, module = "pillow", "PIL"
    fork_safe = True

    def pixels(self, data: Buffer) -> Pixels:
        from PIL import Image

        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image.convert("RGB"))


READER: ImageReader = Pillow()
