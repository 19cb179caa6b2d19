"""Columns without a tensor form are left out, and the rest is read."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.errors import SchemaMismatch
from pipeprof.loaders.tensors import Batch
from pipeprof.report.document.wording import data_source
from pipeprof.sweep.convert.sample import plan_sample

ROWS = 50
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "meta": pa.array([{"x": number} for number in range(ROWS)]),
        "tags": pa.array([["red", "round"]] * ROWS),
        "score": pa.array([0.5] * ROWS),
    }
)
WARNING = (
    r"columns 'meta' \(struct<x: int64>\), 'tags' \(list<string>\) have no tensor form, left out"
)


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """Two files of a table in which a struct and a list of words stand among numbers."""
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    return tmp_path


def test_the_other_columns_are_read_and_a_warning_names_those_left_out(parquet: Path) -> None:
    with pytest.warns(UserWarning, match=WARNING) as warned:
        dataset = pipeprof.open_dataset(str(parquet), batch_size=ROWS)
    assert warned[0].filename == __file__, "at the line that opens the data set"
    batches = list(dataset)
    assert [list(batch) for batch in batches] == [["id", "score"]] * 2
    assert batches[0]["id"].tolist() == [*range(ROWS)]
    assert dataset.source.columns_left_out == ("meta", "tags")
    assert data_source(dataset.source).endswith(", without 2 columns (meta, tags)")
    loader = pipeprof.wrap(DataLoader(dataset, batch_size=None))
    list(loader)
    assert any(re.search(WARNING, note) for note in loader.profile().notes)


def test_their_bytes_stay_on_storage(parquet: Path) -> None:
    with pytest.warns(UserWarning, match="left out"):
        every = pipeprof.open_dataset(str(parquet / "a.parquet"))
    asked = pipeprof.open_dataset(str(parquet / "a.parquet"), columns=["id", "score"])
    assert every._plan.splits == asked._plan.splits
    assert asked.source.columns_left_out == ()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (["id", "meta"], r"column 'meta' is struct<x: int64>, which has no tensor; ask for other"),
        (["id", "tags"], r"column 'tags' is list<string>, which has no tensor; ask for other"),
    ],
)
def test_one_that_is_asked_for_is_an_error_and_no_silent_loss(
    parquet: Path, columns: list[str], says: str
) -> None:
    with pytest.raises(SchemaMismatch, match=says):
        pipeprof.open_dataset(str(parquet), columns=columns)


@pytest.mark.parametrize("name", ["meta", "tags"])
def test_a_data_set_of_nothing_else_is_an_error(name: str, tmp_path: Path) -> None:
    pq.write_table(TABLE.select([name]), tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatch, match="no tensor"):
        pipeprof.open_dataset(str(tmp_path))


def test_lists_of_bytes_in_tfrecord_are_left_out_too(tmp_path: Path) -> None:
    words = pa.RecordBatch.from_arrays(
        [TABLE["id"].combine_chunks(), pa.array([[b"red", b"round"]] * ROWS)], ["id", "tags"]
    )
    encoder = formats.get("tfrecord").encoder(words.schema)
    (tmp_path / "a.tfrecord").write_bytes(encoder.write(words) + encoder.finish())
    with pytest.warns(UserWarning, match=r"column 'tags' \(list<binary>\) has no tensor form"):
        (batch,) = pipeprof.open_dataset(str(tmp_path))
    assert list(batch) == ["id"]


def test_a_copy_in_another_format_keeps_the_lists_of_words(parquet: Path) -> None:
    """Row formats read them whether or not a batch has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = plan_sample(str(parquet), None, 10**9, 0)
    assert sample.schema.names == ["id", "tags", "score"]
    assert sum(batch.num_rows for batch in sample) == 2 * ROWS


def test_as_objects_they_are_handed_on(parquet: Path) -> None:
    """Batches reach across blocks and files, and come from workers."""
    dataset = pipeprof.open_dataset(str(parquet), batch_size=20, objects=True)
    loader: DataLoader[Batch] = DataLoader(dataset, batch_size=None, num_workers=1)
    batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [20] * 5
    for name in ("meta", "tags"):
        rows = [row for batch in batches for row in batch[name].to_pylist()]
        assert rows == TABLE[name].to_pylist() * 2
    assert dataset.source.columns_left_out == ()


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[("a", 1), ("b", 2)], [], None], pa.map_(pa.string(), pa.int64())),
        ([{"tags": ["x", "y"]}, {"tags": []}, None], pa.struct([("tags", pa.list_(pa.string()))])),
        ([[[1, 2], []], [[3]], []], pa.list_(pa.list_(pa.int32()))),
        ([[{"role": "user"}], [], None], pa.list_(pa.struct([("role", pa.string())]))),
    ],
    ids=["map", "struct of lists", "lists of lists", "list of structs"],
)
def test_nested_columns_of_any_kind_are_handed_on(
    rows: list[object], kind: pa.DataType, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"nested": pa.array(rows, kind)}), tmp_path / "a.parquet")
    (batch,) = pipeprof.open_dataset(str(tmp_path), objects=True, shuffle=False)
    assert batch["nested"].to_pylist() == rows


def test_chats_of_one_column_can_be_read(tmp_path: Path) -> None:
    chats = pa.table({"messages": [[{"role": "user", "content": "hello"}]] * 3})
    pq.write_table(chats, tmp_path / "a.parquet")
    for columns in (None, ["messages"]):
        dataset = pipeprof.open_dataset(str(tmp_path), columns=columns, objects=True)
        (batch,) = dataset
        assert batch["messages"].to_pylist() == chats["messages"].to_pylist()


def test_files_of_other_objects_are_an_error(parquet: Path) -> None:
    """A struct of another file is not guessed at."""
    other = TABLE.set_column(1, "meta", pa.array([{"y": "text"}] * ROWS))
    pq.write_table(other, parquet / "c.parquet")
    dataset = pipeprof.open_dataset(str(parquet), objects=True)
    with pytest.raises(
        SchemaMismatch, match=r"c\.parquet: column 'meta' is struct<y: string>, not"
    ):
        list(dataset)
