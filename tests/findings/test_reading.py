"""Far more read than handed over, for real, and the finding taken at its word: rows of a Parquet
file, each read with its whole row group, and a store's file that is read ahead."""

from functools import cached_property
from statistics import median
from time import sleep

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from fsspec.spec import AbstractBufferedFile
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

import pipeprof
from tests.findings import known
from tests.findings.known import codes, text_of

pytestmark = pytest.mark.timed

COLUMNS, USED, ROWS, BATCH = [f"c{number}" for number in range(40)], ["c0", "c1"], 24_000, 32


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """The same table in a file with row groups of so many rows."""
    chance = np.random.default_rng(0)
    table = pa.table({name: chance.random(ROWS) for name in COLUMNS})

    def written(group_rows):
        path = tmp_path_factory.mktemp("rows") / "rows.parquet"
        pq.write_table(table, path, row_group_size=group_rows)
        return path

    return written


class OneByOne(Dataset):
    def __init__(self, path, group_rows, columns=USED):
        self._path, self._group_rows, self._columns = path, group_rows, columns

    @cached_property
    def _file(self):
        return pq.ParquetFile(self._path)

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        group, place = divmod(row, self._group_rows)
        table = self._file.read_row_group(group, use_threads=False)
        return torch.tensor([table[name][place].as_py() for name in self._columns])


class AtOnce(OneByOne):
    """All rows of a batch out of one reading of the row group that they lie in."""

    def __getitems__(self, rows):
        table = self._file.read_row_group(
            rows[0] // self._group_rows, columns=self._columns, use_threads=False
        )
        found = torch.stack([torch.tensor(table[name].to_numpy()) for name in self._columns], 1)
        return list(found[torch.tensor(rows) % self._group_rows])


class Neighbours(BatchSampler):
    """Batches in any order, each of neighbours."""

    def __init__(self):
        super().__init__(RandomSampler(range(ROWS // BATCH)), BATCH, drop_last=False)

    def __iter__(self):
        for first in self.sampler:
            yield list(range(first * BATCH, (first + 1) * BATCH))


def profiled(data, batches=30, **settings):
    loader = pipeprof.wrap(DataLoader(data, num_workers=1, **settings), whole=True)
    for _batch, _ in zip(loader, range(batches), strict=False):
        sleep(0.0002)
    return loader.profile()


def read_a_batch(profile):
    return median(size for size in profile.batches.logical_bytes if size is not None)


def test_a_row_group_for_each_row(write):
    """The advice is taken: rows of one group in a batch, read at once, two columns, smaller row
    groups."""
    path = write(2000)
    group_bytes = pq.ParquetFile(path).metadata.row_group(0).total_byte_size
    torn = profiled(OneByOne(path, 2000), batch_size=BATCH, shuffle=True)
    text = text_of(torn, "read-amplification")
    assert BATCH * group_bytes * 0.9 < read_a_batch(torn) < BATCH * group_bytes * 1.1
    assert "The batch holds 256 B" in text, "32 rows of two float32"
    assert "__getitems__ receives the 32 indices" in text
    cured = profiled(AtOnce(write(128), 128), batch_sampler=Neighbours())
    assert "read-amplification" not in codes(cured)
    assert read_a_batch(cured) < read_a_batch(torn) / 100
    assert cured.throughput.samples_per_s > 3 * torn.throughput.samples_per_s


class Store(fsspec.AbstractFileSystem):
    """One file of 100 MB, which comes at 500 MB/s."""

    protocol = "zeros"
    cachable = False

    def info(self, path, **options):
        return {"name": path, "size": 100_000_000, "type": "file"}

    def _open(self, path, mode="rb", **options):
        return Zeros(self, path, mode, **options)


class Zeros(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        sleep((end - start) / 500e6)
        return bytes(end - start)


def test_a_file_of_a_store_that_is_read_ahead_for_nothing():
    """5 MiB of it, by default."""

    def profile(**options):
        def fetch(index):
            with Store().open("zeros", **options) as file:
                file.seek(index * 1_000_000)
                return torch.frombuffer(bytearray(file.read(10_000)), dtype=torch.uint8)

        return known.profiled(60, fetch, 0.0, num_workers=1)

    text = text_of(profile(), "read-amplification")
    assert "1 sample a worker reads 5.25 MB. The batch holds 10.0 kB: 525 times as much" in text
    assert "cache_type='none'" in text
    cured = profile(cache_type="none")
    assert "read-amplification" not in codes(cured)
    assert set(cured.batches.bytes) == {10_000.0}


def test_a_reader_that_hands_over_what_it_reads(write):
    """It is starved, and by reading."""
    whole = AtOnce(write(BATCH), BATCH, COLUMNS)
    profile = profiled(whole, 200, batch_sampler=Neighbours())
    assert profile.diagnosis.verdict == "starved"
    assert "read-amplification" not in codes(profile)
    handed = BATCH * len(COLUMNS) * 8
    assert handed < read_a_batch(profile) < 4 * handed
