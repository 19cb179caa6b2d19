"""The comparison of formats for images: all hold the same, and each can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipeprof
from benchmarks.formats import LAYOUTS, Place, run, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("images")
    write(found, 90, seed=1)
    return found


def images(url: str) -> list[bytes]:
    dataset = pipeprof.open_dataset(url, columns=["image"], types={"image": "binary"})
    return sorted(
        batch["image"].bytes_at(row) for batch in dataset for row in range(len(batch["image"]))
    )


@pytest.mark.parametrize("name", list(LAYOUTS)[:-1])
def test_each_format_holds_the_same_images(name: str, folder: Path) -> None:
    found = images(str(folder / name))
    assert len(found) == 90
    assert found == images(str(folder / "folder"))


@pytest.mark.parametrize("name", ["folder again", "arrow"])
def test_a_run_reads_and_decodes(name: str, folder: Path) -> None:
    place = Place("here", str(folder), folder)
    measured = run(place, name, shuffle=True, seconds=0.2, step_s=0.001)
    assert measured.samples_per_s > 0
    assert measured.cpu_s > 0
    assert 0 <= measured.starved <= 1
