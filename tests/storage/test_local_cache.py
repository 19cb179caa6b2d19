"""A cache in a folder: what was read once is read from there, whole or not at all."""

from __future__ import annotations

import errno
import os
import uuid
from multiprocessing import get_context
from pathlib import Path

import fsspec
import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.errors import OutputError, StorageError
from pipeprof.loaders.tensors import Ragged
from pipeprof.model import ReadOptions
from pipeprof.storage import ObjectInfo, Store, open_store
from pipeprof.storage.local_cache import cached_files

DATA = bytes(range(256)) * 40
RANGES = [(0, 100), (5000, 300)]


@pytest.fixture
def url() -> str:
    """An object of `DATA` on an fsspec file system, of which this process alone knows."""
    url = f"memory://{uuid.uuid4().hex}/a.bin"
    fs, path = fsspec.core.url_to_fs(url)
    fs.pipe_file(path, DATA)
    return url


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "cache")


def opened(url: str, folder: str, limit: int | None = None) -> tuple[Store, ObjectInfo]:
    store = open_store(url, read=ReadOptions(local_cache=folder, local_cache_bytes=limit))
    return store, store.find(url)[0]


def replace_object(url: str) -> None:
    """Put other bytes in the object's place, which only a read of the storage would give."""
    fs, path = fsspec.core.url_to_fs(url)
    fs.pipe_file(path, bytes(len(DATA)))


def held(folder: str) -> int:
    return sum(os.path.getsize(each) for each in cached_files(folder) if len(Path(each).name) == 64)


def expected(ranges: list[tuple[int, int]]) -> list[bytes]:
    return [DATA[offset : offset + length] for offset, length in ranges]


def read(store: Store, item: ObjectInfo, ranges: list[tuple[int, int]]) -> list[bytes]:
    return [bytes(buffer) for buffer in store.read(item, ranges)]


def test_what_was_read_is_read_from_the_folder(url: str, folder: str) -> None:
    store, item = opened(url, folder)
    assert read(store, item, RANGES) == expected(RANGES)
    replace_object(url)
    assert read(store, item, RANGES) == expected(RANGES)
    assert read(store, item, [(0, 100)]) == [bytes(100)], "another read is of the storage"


def test_it_is_there_for_the_next_run(url: str, folder: str) -> None:
    read(*opened(url, folder), RANGES)
    replace_object(url)
    assert read(*opened(url, folder), RANGES) == expected(RANGES)


def test_a_full_folder_keeps_what_it_has(url: str, folder: str) -> None:
    store, item = opened(url, folder, limit=250)
    first, second, third = [(0, 100)], [(100, 100)], [(200, 100)]
    for ranges in (first, second, third):
        assert read(store, item, ranges) == expected(ranges)
    assert held(folder) == 200
    replace_object(url)
    assert read(store, item, first) + read(store, item, second) == expected(first + second)
    assert read(store, item, third) == [bytes(100)]


def test_an_emptied_or_damaged_folder_is_no_error(url: str, folder: str) -> None:
    store, item = opened(url, folder)
    read(store, item, RANGES)
    for path in cached_files(folder):
        os.unlink(path)
    assert read(store, item, RANGES) == expected(RANGES)
    for path in cached_files(folder):
        Path(path).write_bytes(b"?")
    assert read(*opened(url, folder), RANGES) == expected(RANGES)


def test_a_full_disk_ends_no_training(
    url: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, item = opened(url, folder)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert read(store, item, RANGES) == expected(RANGES)
    assert held(folder) == 0
    assert len(cached_files(folder)) == 1, "nothing partial"


def test_a_folder_that_cannot_be_made_is_named(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file/cache cannot be a local cache: Not a directory"):
        opened(url, str(tmp_path / "file" / "cache"))


def test_an_object_that_is_missing_is_still_an_error(url: str, folder: str) -> None:
    store, item = opened(url, folder)
    fs, path = fsspec.core.url_to_fs(url)
    fs.rm_file(path)
    with pytest.raises(StorageError, match=r"a\.bin"):
        store.read(item, RANGES)


def _read_all(store: Store, item: ObjectInfo) -> None:
    for offset in range(0, len(DATA), 64):
        assert read(store, item, [(offset, 64)]) == expected([(offset, 64)])


def test_processes_share_it(tmp_path: Path, folder: str) -> None:
    """All bytes are right while they write the same files, and their limit is of all together."""
    file = tmp_path / "a.bin"
    file.write_bytes(DATA)
    store, item = opened(str(file), folder, limit=len(DATA) // 2)
    workers = [get_context("fork").Process(target=_read_all, args=(store, item)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    assert 0 < held(folder) <= len(DATA) // 2


def content(batch: dict[str, torch.Tensor | Ragged]) -> bytes:
    """Return the bytes of all tensors of a batch."""
    parts = [
        tensor
        for column in batch.values()
        for tensor in ([column.values, column.offsets] if isinstance(column, Ragged) else [column])
    ]
    return b"".join(part.numpy().tobytes() for part in parts)


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("format_name", ["csv", "parquet", "tfrecord"])
def test_a_data_set_is_the_same_in_every_epoch(
    format_name: str, num_workers: int, tmp_path: Path, folder: str
) -> None:
    data = str(tmp_path / "data")
    generate(GenerateSpec(data, "tabular", format_name, 100_000, shards=3))

    def batches(options: ReadOptions) -> list[bytes]:
        dataset = pipeprof.open_dataset(data, read=options)
        loader = DataLoader(dataset, batch_size=None, num_workers=num_workers)
        return [content(batch) for batch in loader]

    plain, caching = batches(ReadOptions()), ReadOptions(local_cache=folder)
    first, size = batches(caching), held(folder)
    second = batches(caching)
    assert size == held(folder) > 0, "the second epoch reads nothing new"
    assert first == second == plain
    assert len(plain) > 1
