"""Tar archives with an index, as DALI's wds2idx writes it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipeprof
from pipeprof import ReadOptions
from pipeprof.errors import CorruptData, UsageError
from pipeprof.formats.webdataset.index import indexed_splits
from pipeprof.loaders.dataset.dataset import FileDataset

ROWS = 12


def written(path: Path, first: int = 0) -> Path:
    """Write an archive of `ROWS` samples of two files; one of them has a long name, which takes
    members of its own."""
    with tarfile.open(path, "w") as tar:
        for number in range(first, first + ROWS):
            stem = "long" * 60 if number == first + 5 else f"{number:03}"
            for extension, data in (("id", b"%d" % number), ("blob", bytes(number * 100))):
                info = tarfile.TarInfo(f"{stem}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def lines_of(archive: Path) -> Iterator[str]:
    """Yield the lines of an index as wds2idx writes them."""
    samples: dict[str, list[str]] = {}
    with tarfile.open(archive) as tar:
        for info in tar:
            stem, _, extension = info.name.partition(".")
            words = f"{extension} {info.offset_data} {info.size} {info.name}"
            samples.setdefault(stem, []).append(words)
    yield f"v1.2 {len(samples)}"
    yield from map(" ".join, samples.values())


def index(archive: Path) -> Path:
    path = archive.with_suffix(".idx")
    path.write_text("\n".join(lines_of(archive)) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two archives, of which the first has an index."""
    index(written(tmp_path / "a.tar"))
    written(tmp_path / "b.tar", ROWS)
    return tmp_path


def ids(dataset: FileDataset) -> list[int]:
    return [int(each) for batch in dataset for each in batch["id"]]


def test_an_index_cuts_its_archive_into_runs_of_samples(folder: Path) -> None:
    dataset = pipeprof.open_dataset(str(folder), read=ReadOptions(split_bytes=4000))
    assert dataset.splits > 3
    assert ids(dataset) == list(range(2 * ROWS))
    rows = [split.rows for _, split in dataset.object_splits]
    assert sum(row or 0 for row in rows) == ROWS
    assert rows[-1] is None, "of the archive without an index"


def test_any_row_can_follow_any_other(folder: Path) -> None:
    with pytest.raises(UsageError, match="shuffle='full' needs the number of rows"):
        pipeprof.open_dataset(str(folder), shuffle="full")
    dataset = pipeprof.open_dataset(str(folder / "a.*"), shuffle="full", batch_size=4)
    found = ids(dataset)
    assert sorted(found) == list(range(ROWS))
    assert found != list(range(ROWS))


def test_an_index_that_says_too_few_samples_is_found_out(folder: Path) -> None:
    lines = (folder / "a.idx").read_text().splitlines()
    (folder / "a.idx").write_text("\n".join([f"v1.2 {ROWS - 1}", *lines[1:4], *lines[5:]]))
    with pytest.raises(CorruptData, match=r"a\.tar: it has .* samples .* its index says"):
        ids(pipeprof.open_dataset(str(folder)))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "does not begin as an index"),
        ("v1.2 2\njpg 512 1 a.jpg\n", "another number of samples"),
        ("v1.2 1\njpg 512 1\n", "a line is not files"),
        ("v1.2 1\njpg 512 99999999 a.jpg\n", "another archive"),
        ("v1.1 2\njpg 1024 1\njpg 512 1\n", "another archive"),
    ],
)
def test_an_index_that_lies_is_named(folder: Path, text: str, error: str) -> None:
    (folder / "a.idx").write_text(text)
    with pytest.raises(CorruptData, match=rf"a\.idx: .*{error}.*or remove it"):
        pipeprof.open_dataset(str(folder))


def test_an_older_index_has_no_names() -> None:
    [split] = indexed_splits(b"v1.1 1\njpg 512 9 cls 1536 1\n", 4096, 0)
    assert (split.start, split.end, split.rows) == (0, 2048, 1)
