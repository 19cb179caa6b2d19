"""Folders of images: a file is a row, and its folder the class."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from PIL import Image

import pipeprof
from pipeprof.errors import FormatError, SchemaMismatch, UsageError
from pipeprof.formats import detect, get
from pipeprof.formats.images.format import folder_numbers
from pipeprof.loaders.tensors import Ragged


def image(kind: str, red: int = 0) -> bytes:
    sink = io.BytesIO()
    Image.new("RGB", (8, 6), (red, 0, 0)).save(sink, kind)
    return sink.getvalue()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two cats and three dogs, one of them in a folder of its own."""
    for number, name in enumerate(
        ("cat/a.jpg", "cat/b.png", "dog/c.webp", "dog/old/d.JPEG", "dog/e.jpg")
    ):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = {".png": "PNG", ".webp": "WEBP"}.get(path.suffix, "JPEG")
        path.write_bytes(image(kind, number))
    return tmp_path / "photos"


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_images_are_known_by_their_content(kind: str) -> None:
    data = image(kind)
    assert detect("x.bin", data, data).name == "images"


def test_each_file_is_a_row_and_its_folder_a_class(photos: Path) -> None:
    dataset = pipeprof.open_dataset(str(photos), batch_size=4)
    batches = list(dataset)
    assert [batch["label"].tolist() for batch in batches] == [[0, 0, 1, 1], [1]]
    first = batches[0]["image"]
    assert isinstance(first, Ragged)
    assert first.bytes_at(1) == (photos / "cat" / "b.png").read_bytes()
    assert (dataset.source.format, dataset.source.objects) == ("images", 5)


def test_the_classes_are_those_of_torchvision(photos: Path) -> None:
    names = ["b/x/1.jpg", "a/2.jpg", "b/3.jpg", "c/4.jpg"]
    assert folder_numbers([f"/data/{name}" for name in names]) == [1, 0, 1, 2]
    assert folder_numbers([f"bucket/train/{name}" for name in names]) == [1, 0, 1, 2]
    assert folder_numbers(["/data/1.jpg", "/data/2.jpg"]) == [0, 0]


def test_a_glob_takes_the_images_out_of_a_mixed_folder(photos: Path) -> None:
    (photos / "labels.csv").write_text("name,label\na,1\n")
    with pytest.raises(FormatError, match=r"mixes formats \(.*csv.*images.*glob"):
        pipeprof.open_dataset(str(photos))
    found = pipeprof.open_dataset(str(photos / "*" / "*.jpg"))
    assert [batch["label"].tolist() for batch in found] == [[0, 1]]


def test_the_label_alone_and_an_unknown_column(photos: Path) -> None:
    [batch] = pipeprof.open_dataset(str(photos), columns=["label"])
    assert list(batch) == ["label"]
    with pytest.raises(SchemaMismatch, match="no column 'class'"):
        pipeprof.open_dataset(str(photos), columns=["class"])


def test_workers_read_each_image_once(photos: Path) -> None:
    dataset = pipeprof.open_dataset(str(photos), batch_size=2, shuffle=True)
    loader = pipeprof.wrap(torch_loader(dataset, 2))
    assert sorted(label for batch in loader for label in batch["label"].tolist()) == [0, 0, 1, 1, 1]


def torch_loader(dataset: pipeprof.FileDataset, workers: int) -> object:
    from torch.utils.data import DataLoader

    return DataLoader(dataset, batch_size=None, num_workers=workers)


def test_it_is_not_written() -> None:
    with pytest.raises(UsageError, match="read, but not written; choose another"):
        get("images").encoder(pa.schema([("image", pa.binary())]))
