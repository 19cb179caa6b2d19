"""Tables of any length become batches of one length, in order, with every type of column."""

import pyarrow as pa
import pytest
import torch

from pipeprof.loaders.dataset.batching import batches_of
from pipeprof.loaders.tensors import Ragged

ROWS = 23
TABLE = pa.record_batch(
    {
        "id": pa.array(range(ROWS)),
        "price": pa.array([None if row % 5 == 0 else row / 2 for row in range(ROWS)]),
        "word": pa.array([None if row % 7 == 0 else "x" * (row % 4) for row in range(ROWS)]),
        "ids": pa.array([None if row % 6 == 0 else [row] * (row % 3) for row in range(ROWS)]),
        "pair": pa.array([[row, -row] for row in range(ROWS)], pa.list_(pa.int64(), 2)),
    }
)


def cut(*lengths):
    """Return `TABLE` in tables of so many rows, and one of the remaining rows."""
    at = 0
    for length in lengths:
        yield TABLE.slice(at, length)
        at += length
    yield TABLE.slice(at)


def row_of(value, row):
    return value[row].tolist() if isinstance(value, torch.Tensor | Ragged) else value


@pytest.mark.parametrize("rows", [1, 4, 7, 23, 100])
@pytest.mark.parametrize("lengths", [(), (4, 4), (1, 0, 2, 9), (22,), (1,) * 20])
def test_however_tables_are_cut_batches_are_the_same(rows, lengths):
    batches = list(batches_of(cut(*lengths), rows, False, null_masks=True))
    assert [len(batch["id"]) for batch in batches] == [
        min(rows, ROWS - start) for start in range(0, ROWS, rows)
    ]
    found = [
        {name: row_of(value, row) for name, value in batch.items()}
        for batch in batches
        for row in range(len(batch["id"]))
    ]
    for number, (row, expected) in enumerate(zip(found, TABLE.to_pylist(), strict=True)):
        assert row["id"] == number
        assert row["price.null"] == (expected["price"] is None)
        assert row["price"] == expected["price"] or row["price.null"]
        assert bytes(row["word"]).decode() == (expected["word"] or "")
        assert row["ids"] == (expected["ids"] or [])
        assert row["pair"] == expected["pair"]
    for batch in batches:
        assert batch["ids"].offsets[0] == 0
        assert batch["ids"].offsets[-1] == len(batch["ids"].values)


def test_what_is_left_over_is_dropped_when_told_so():
    assert [len(b["id"]) for b in batches_of(cut(5, 5), 8, True)] == [8, 8]


def test_a_row_is_in_one_batch_only_so_that_batches_may_be_written_into():
    found, table = [], pa.record_batch({"id": pa.array(range(ROWS))})
    for batch in batches_of([table.slice(0, 10), table.slice(10)], 4, False):
        found += batch["id"].tolist()
        batch["id"].zero_()
    assert found == list(range(ROWS))


def test_a_batch_from_within_a_table_costs_no_copy():
    address = TABLE.column("id").buffers()[1].address
    first, second, *_ = batches_of(cut(), 4, False)
    assert first["id"].data_ptr() == address
    assert second["id"].data_ptr() == address + 4 * 8
