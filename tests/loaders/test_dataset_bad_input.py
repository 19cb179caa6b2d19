"""`open_dataset` over bad input: what is missing, damaged, impossible, or differs between files."""

import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.errors import (
    CorruptData,
    FormatError,
    NothingFound,
    SchemaMismatch,
    UsageError,
)
from pipeprof.formats.base import ReadOptions
from tests.loaders.test_dataset import ids, write


def test_a_missing_path(tmp_path):
    with pytest.raises(NothingFound, match="does not exist"):
        pipeprof.open_dataset(str(tmp_path / "nowhere"))


def test_an_empty_folder(tmp_path):
    with pytest.raises(NothingFound, match="without data files"):
        pipeprof.open_dataset(str(tmp_path))


def test_a_mixed_folder_is_refused_with_the_way_out(tmp_path):
    write(tmp_path, "csv")
    write(tmp_path, "parquet")
    with pytest.raises(FormatError, match=r"mixes formats .*\*\.parquet"):
        pipeprof.open_dataset(str(tmp_path))
    only = pipeprof.open_dataset(f"{tmp_path}/*.parquet", batch_size=60)
    assert ids(only) == list(range(60))


def test_a_file_of_another_format_under_this_suffix(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"id,price\n1,2\n")
    with pytest.raises(FormatError, match=r"x\.parquet"):
        pipeprof.open_dataset(str(tmp_path))


def test_a_truncated_file_names_itself(tmp_path):
    url = write(tmp_path, "parquet", files=2)
    file = tmp_path / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"part-1\.parquet"):
        pipeprof.open_dataset(url)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_record_that_is_damaged_names_its_file(tmp_path, workers):
    url = write(tmp_path, "tfrecord", files=1, rows=20_000)
    file = tmp_path / "part-0.tfrecord"
    data = bytearray(file.read_bytes())
    data[-30] ^= 1
    file.write_bytes(data)
    batches = iter(DataLoader(pipeprof.open_dataset(url), batch_size=None, num_workers=workers))
    with pytest.raises(CorruptData, match=r"part-0\.tfrecord"):
        list(batches)
    if workers:
        # torch keeps the iterator alive in the traceback, and its workers with it
        batches._shutdown_workers()


def test_a_column_that_does_not_exist(tmp_path):
    with pytest.raises(SchemaMismatch, match=r"part-0\.csv.*'prize'.*price"):
        pipeprof.open_dataset(write(tmp_path, "csv"), columns=["prize"])


def test_files_that_disagree(tmp_path):
    write(tmp_path, "parquet", files=1)
    other = pa.record_batch({"id": pa.array(["text"])})
    encoder = formats.get("parquet").encoder(other.schema)
    (tmp_path / "part-9.parquet").write_bytes(encoder.write(other) + encoder.finish())
    with pytest.raises(SchemaMismatch, match=r"part-9\.parquet has other types.*'id' is string"):
        pipeprof.open_dataset(str(tmp_path), columns=["id"])
    with pytest.raises(SchemaMismatch, match=r"part-9\.parquet.*'price'"):
        pipeprof.open_dataset(str(tmp_path))


def test_files_of_json_may_lack_a_column_and_have_it_as_the_first_file_has_it(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "score": 0.5}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n{"id": 3, "score": 2, "more": 1}\n')
    [batch] = pipeprof.open_dataset(str(tmp_path))
    assert list(batch) == ["id", "score"]
    assert batch["id"].tolist() == [1, 2, 3]
    assert str(batch["score"].tolist()) == "[0.5, nan, 2.0]"
    (tmp_path / "c.jsonl").write_text('{"id": "four"}\n')
    with pytest.raises(
        SchemaMismatch, match=r"c\.jsonl: line 1, column 'id': a string where int64"
    ):
        list(pipeprof.open_dataset(str(tmp_path)))


def test_files_may_have_their_columns_in_another_order(tmp_path):
    write(tmp_path, "csv", files=1)
    (tmp_path / "part-9.csv").write_text("name,extra,price,id\nlast,1,2.5,20\n")
    *_, last = pipeprof.open_dataset(str(tmp_path), batch_size=7)
    assert list(last) == ["id", "price", "name"]
    assert last["id"].tolist()[-1] == 20
    assert last["name"].bytes_at(-1) == b"last"


@pytest.mark.parametrize("name", ["block_bytes", "request_bytes", "queue_depth"])
def test_an_impossible_way_of_reading(tmp_path, name):
    with pytest.raises(UsageError, match=f"{name}.* at least 1"):
        pipeprof.open_dataset(str(tmp_path), read=ReadOptions(**{name: 0}))


def test_an_impossible_batch_size(tmp_path):
    with pytest.raises(UsageError, match="at least 1"):
        pipeprof.open_dataset(str(tmp_path), batch_size=0)
