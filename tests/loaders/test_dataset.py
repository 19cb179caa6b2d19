"""`open_dataset` over real files of every format."""

import os
import pickle

import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.formats.base import ReadOptions
from pipeprof.loaders.tensors import Ragged

FORMATS = list(formats.WRITTEN)


def table_of(first, rows):
    ids = range(first, first + rows)
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "price": pa.array([row / 4 for row in ids], pa.float32()),
            "name": pa.array([f"row {row}" for row in ids], pa.string()),
        }
    )


def write(folder, format_name, files=3, rows=20, table=table_of):
    """``files`` files of ``rows`` rows each; parquet in two row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        whole = table(number * rows, rows)
        chosen = formats.get(format_name)
        encoder = chosen.encoder(whole.schema)
        half = rows // 2
        data = encoder.write(whole.slice(0, half)) + encoder.write(whole.slice(half))
        (folder / f"part-{number}{chosen.suffixes[0]}").write_bytes(data + encoder.finish())
    return str(folder)


def ids(batches):
    return [number for batch in batches for number in batch["id"].tolist()]


@pytest.mark.parametrize("format_name", FORMATS)
def test_batches_are_the_rows_in_order_as_tensors(tmp_path, format_name):
    dataset = pipeprof.open_dataset(write(tmp_path, format_name), batch_size=16)
    batches = list(dataset)
    assert [len(batch["id"]) for batch in batches] == [16, 16, 16, 12]
    assert ids(batches) == list(range(60))
    batch = batches[0]
    assert batch["id"].dtype == torch.int64
    assert batch["price"].dtype == torch.float32
    assert batch["price"].tolist() == [row / 4 for row in range(16)]
    assert isinstance(batch["name"], Ragged)
    assert batch["name"].bytes_at(3) == b"row 3"
    assert dataset.source.format == format_name
    assert dataset.source.objects == 3


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("files", [1, 2, 7])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_every_row_once_for_every_number_of_workers_and_ranks(
    tmp_path, format_name, files, world_size, monkeypatch
):
    """There are more and fewer splits than shares. The share of a worker is computed by the data
    set itself here; the next test has real workers."""
    url = write(tmp_path, format_name, files=files, rows=6)
    for workers in range(1, 5):
        seen = []
        for rank in range(world_size):
            dataset = pipeprof.open_dataset(url, batch_size=4, rank=rank, world_size=world_size)
            for worker in range(workers):
                info = type("Info", (), {"id": worker, "num_workers": workers})
                monkeypatch.setattr(
                    "pipeprof.loaders.dataset.sharding.get_worker_info", lambda i=info: i
                )
                seen += ids(dataset)
        assert sorted(seen) == list(range(files * 6))


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("world_size", [1, 2])
def test_every_row_once_through_real_workers(tmp_path, workers, world_size):
    url = write(tmp_path, "parquet", files=3, rows=6)
    seen = []
    for rank in range(world_size):
        dataset = pipeprof.open_dataset(
            url, batch_size=4, rank=rank, world_size=world_size, read=ReadOptions(split_bytes=1)
        )
        seen += ids(DataLoader(dataset, batch_size=None, num_workers=workers))
    assert sorted(seen) == list(range(18))


@pytest.mark.parametrize("format_name", FORMATS)
def test_columns_are_chosen_and_ordered(tmp_path, format_name):
    dataset = pipeprof.open_dataset(write(tmp_path, format_name), columns=["price", "id"])
    (batch, *_) = dataset
    assert list(batch) == ["price", "id"]


def test_the_order_is_the_seeds_and_the_epochs(tmp_path):
    url = write(tmp_path, "parquet", files=4)

    def order(seed, epoch=0):
        dataset = pipeprof.open_dataset(url, batch_size=8, shuffle=True, seed=seed)
        dataset.set_epoch(epoch)
        return ids(dataset)

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert order(1) != order(1, epoch=1)
    assert sorted(order(1)) == list(range(80))
    assert order(1)[:20] != sorted(order(1)[:20]), "rows within a block are shuffled too"


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_set_epoch_reaches_persistent_workers(method, tmp_path):
    dataset = pipeprof.open_dataset(write(tmp_path, "parquet", files=4), batch_size=8, shuffle=True)
    loader = DataLoader(
        dataset, batch_size=None, num_workers=2, persistent_workers=True,
        multiprocessing_context=method,
    )  # fmt: skip
    first, again = ids(loader), ids(loader)
    dataset.set_epoch(1)
    assert first == again != ids(loader)


def test_drop_last_and_repeat(tmp_path):
    url = write(tmp_path, "csv", files=1)
    whole = pipeprof.open_dataset(url, batch_size=8, drop_last=True)
    assert [len(batch["id"]) for batch in whole] == [8, 8]
    forever = iter(pipeprof.open_dataset(url, batch_size=8, repeat=True))
    assert ids(next(forever) for _ in range(5)) == [*range(20), *range(20)]


def test_repeating_nothing_ends(tmp_path):
    (tmp_path / "empty.csv").write_text("id,price\n")
    assert list(pipeprof.open_dataset(str(tmp_path), repeat=True)) == []


def test_a_transform_runs_on_each_batch_in_the_worker(tmp_path):
    def transform(batch):
        return batch["id"] * 2, os.getpid()

    dataset = pipeprof.open_dataset(write(tmp_path, "csv"), batch_size=60, transform=transform)
    ((doubled, process),) = DataLoader(dataset, batch_size=None, num_workers=1)
    assert doubled.tolist() == list(range(0, 120, 2))
    assert process != os.getpid()


def test_null_masks(tmp_path):
    def holes(first, rows):
        return pa.record_batch({"id": pa.array([1, None] * (rows // 2), pa.int64())})

    url = write(tmp_path, "parquet", files=1, table=holes)
    (batch,) = pipeprof.open_dataset(url, null_masks=True)
    assert batch["id.null"].tolist() == [False, True] * 10


def test_types_override_what_is_inferred(tmp_path):
    url = write(tmp_path, "csv", files=1)
    (batch,) = pipeprof.open_dataset(url, types={"id": "float64"})
    assert batch["id"].dtype == torch.float64


def test_reading_and_decoding_are_measured_apart(tmp_path):
    url = write(tmp_path, "parquet", files=3)
    loader = pipeprof.wrap(DataLoader(pipeprof.open_dataset(url, batch_size=4), batch_size=None))
    for _ in range(4):
        list(loader)
    profile = loader.profile()
    assert profile.stages["read"].total_s > 0
    assert profile.stages["decode"].total_s > 0
    assert profile.stages["collate"].total_s > 0
    assert profile.source == loader.dataset.source
    assert profile.config.batch_size == 4


def test_bytes_and_requests_are_those_of_the_files(tmp_path):
    url = write(tmp_path, "tfrecord", files=2)
    loader = pipeprof.wrap(DataLoader(pipeprof.open_dataset(url, batch_size=5), batch_size=None))
    list(loader)
    log = loader.recording().batches
    assert sum(log.bytes) == loader.dataset.source.bytes
    assert sum(log.requests) == 2


def test_a_data_set_travels_to_other_processes(tmp_path):
    dataset = pipeprof.open_dataset(write(tmp_path, "csv"), batch_size=60)
    assert ids(pickle.loads(pickle.dumps(dataset))) == list(range(60))


def test_a_remote_data_set_is_the_same(tmp_path):
    import fsspec

    url = write(tmp_path, "parquet")
    fs = fsspec.filesystem("memory")
    fs.put(url, "/remote-data-set", recursive=True)
    remote = pipeprof.open_dataset("memory://remote-data-set", batch_size=16)
    assert ids(remote) == list(range(60))
    assert ids(DataLoader(remote, batch_size=None, num_workers=1)) == list(range(60))
