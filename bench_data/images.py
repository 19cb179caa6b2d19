"""Draw real JPEGs of varied size, with smooth and detailed regions as in photographs.

Each image blends two crops of a few large textures, because drawing noise for each image would take
longer than encoding it.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from PIL import Image

from pipeprof.bench_data.rows import Kind, block_random

_SHORTEST, _LONGEST = 160, 500
"""Range of an image's width and height, in pixels."""
_QUALITY = 92
_TEXTURES = 6
_SIDE = 768
"""Width and height of a texture, in pixels."""


_SCHEMA = pa.schema(
    [("image", pa.binary()), ("label", pa.int64()), ("width", pa.int64()), ("height", pa.int64())]
)


def _draw(random: np.random.Generator, numbers: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
    shape = (len(numbers), 2)
    sizes = random.triangular(_SHORTEST, 375, _LONGEST + 1, shape).astype(np.int64)
    data = [_jpeg(random, seed, width, height) for width, height in sizes.tolist()]
    labels = random.integers(0, 1000, len(numbers))
    return {"image": data, "label": labels, "width": sizes[:, 0], "height": sizes[:, 1]}


def _jpeg(random: np.random.Generator, seed: int, width: int, height: int) -> bytes:
    front, back = (_crop(random, seed, width, height) for _ in range(2))
    image = Image.blend(front, back, 0.5 * random.random())
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=_QUALITY)
    return buffer.getvalue()


def _crop(random: np.random.Generator, seed: int, width: int, height: int) -> Image.Image:
    texture = _texture(seed, int(random.integers(_TEXTURES)))
    left, top = random.integers(0, (_SIDE - width, _SIDE - height)).tolist()
    image = texture.crop((left, top, left + width, top + height))
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


@lru_cache(maxsize=2 * _TEXTURES)
def _texture(seed: int, index: int) -> Image.Image:
    """Draw noise at every scale, with fine scales that are strong in some regions only."""
    random = block_random("texture", seed, index)
    coarse = sum(amount * _noise(random, cells) for cells, amount in ((3, 40), (6, 30), (12, 20)))
    fine = sum(
        amount * _noise(random, cells)
        for cells, amount in ((24, 10), (48, 9), (96, 9), (192, 9), (384, 9), (768, 8))
    )
    detail = np.clip(0.8 + 0.9 * _noise(random, 4), 0.05, 2.5)
    detail /= detail.mean()
    bands = [
        128 + coarse + detail * fine,
        *(128 + 16 * _noise(random, 3) + 12 * _noise(random, 24) for _ in range(2)),
    ]
    # luminance and colour, as JPEG stores them, so that no image needs a conversion
    return Image.merge(
        "YCbCr", [Image.fromarray(np.clip(band, 0, 255).astype(np.uint8)) for band in bands]
    )


def _noise(random: np.random.Generator, cells: int) -> npt.NDArray[np.float32]:
    """Draw smooth noise with ``cells`` bumps per side, zero mean and unit variance."""
    small = Image.fromarray(random.standard_normal((cells, cells), np.float32))
    noise = np.array(small.resize((_SIDE, _SIDE), Image.Resampling.BICUBIC), np.float32)
    noise -= noise.mean()
    noise /= noise.std()
    return noise


kind = Kind("images", _SCHEMA, 46_000, 64, _draw)
