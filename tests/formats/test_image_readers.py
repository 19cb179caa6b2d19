"""Readers that decode images: the same pixels, whichever library does it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import pipeprof
from pipeprof.cli.app import run
from pipeprof.errors import CorruptData, SchemaMismatch, UsageError
from pipeprof.formats import readers

READERS = [name for name, known in readers.READERS.items() if "images" in known]
CLOSE = 6
"""Levels of 255 by which decoders of JPEG may differ, as they round differently."""


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if readers.installed_version(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A grey and a coloured JPEG of different sizes, in a folder each."""
    across = np.linspace(0, 255, 40 * 24).reshape(24, 40).astype(np.uint8)
    colours = np.stack([across, across[::-1], 255 - across], axis=2)
    for name, pixels in (("cat/grey.jpg", across), ("dog/colours.jpg", colours[:16])):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(pixels).save(path, quality=95, subsampling=0)
    return tmp_path / "photos"


def test_pixels_sizes_and_classes(reader: str, photos: Path) -> None:
    dataset = pipeprof.open_dataset(str(photos), batch_size=2, reader=reader)
    [batch] = dataset
    assert list(batch) == ["image", "height", "width", "label"]
    assert (batch["height"].tolist(), batch["width"].tolist()) == ([24, 16], [40, 40])
    assert batch["label"].tolist() == [0, 1]
    assert dataset.source.reader == reader
    for row, path in enumerate(("cat/grey.jpg", "dog/colours.jpg")):
        height, width = batch["height"][row], batch["width"][row]
        pixels = batch["image"][row].view(height, width, 3).int()
        with Image.open(photos / path) as image:
            true = torch.from_numpy(np.array(image.convert("RGB"))).int()
        assert (pixels - true).abs().max() <= CLOSE


def test_the_label_alone_decodes_nothing(reader: str, photos: Path) -> None:
    (photos / "cat" / "grey.jpg").write_bytes(b"\xff\xd8\xff" + bytes(50))
    [batch] = pipeprof.open_dataset(str(photos), columns=["label"], reader=reader)
    assert batch["label"].tolist() == [0, 1]
    with pytest.raises(SchemaMismatch, match="no column 'class'"):
        pipeprof.open_dataset(str(photos), columns=["class"], reader=reader)


def test_an_image_that_does_not_decode(reader: str, photos: Path) -> None:
    whole = (photos / "dog" / "colours.jpg").read_bytes()
    (photos / "dog" / "colours.jpg").write_bytes(b"\xff\xd8\xff" + bytes(100) + whole[-20:])
    with pytest.raises(CorruptData, match=rf"colours\.jpg.*{reader} cannot read it"):
        list(pipeprof.open_dataset(str(photos), reader=reader))
    skipping = pipeprof.open_dataset(str(photos), reader=reader, on_error="skip")
    with pytest.warns(match=r"colours\.jpg"):
        assert [batch["label"].tolist() for batch in skipping] == [[0]]


def test_other_kinds_of_images_by_pillow(tmp_path: Path) -> None:
    for kind in ("PNG", "WEBP", "GIF", "BMP", "TIFF"):
        sink = io.BytesIO()
        Image.new("RGB", (8, 6), (200, 0, 0)).save(sink, kind)
        (tmp_path / f"1.{kind.lower()}").write_bytes(sink.getvalue())
    [batch] = pipeprof.open_dataset(str(tmp_path), reader="pillow")
    assert batch["height"].tolist() == [6] * 5


def test_a_sweep_compares_only_readers_that_decode(
    photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sweep", str(photos), "--reader", "own,pillow", "--step-ms", "1"]) == 2
    assert "own hands on the bytes of images" in " ".join(capsys.readouterr().err.split())


def test_images_have_readers_of_their_own() -> None:
    with pytest.raises(UsageError, match="the reader polars does not know images; own, pillow"):
        readers.read_by("polars", pipeprof.formats.get("images"))
