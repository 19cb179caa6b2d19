"""The orders of rows of `open_dataset(shuffle=…)`, over real files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch.utils.data import DataLoader

import pipeprof
from pipeprof import formats
from pipeprof.errors import UsageError
from pipeprof.loaders.dataset.shuffling import buffered
from pipeprof.loaders.dataset.split_decoder import ROW_NUMBER, ROWS_OF_SPLIT

ORDERS = ["none", "shards", "blocks", "buffer:50", "buffer:1000", "full"]
FILES, GROUPS, ROWS = 4, 3, 40
COUNT = FILES * GROUPS * ROWS
ONE_GROUP = pipeprof.ReadOptions(split_bytes=1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Parquet files of ascending numbers, in small row groups."""
    folder = tmp_path_factory.mktemp("ascending")
    for number in range(FILES):
        ids = range(number * GROUPS * ROWS, (number + 1) * GROUPS * ROWS)
        pq.write_table(pa.table({"id": ids}), folder / f"{number}.parquet", row_group_size=ROWS)
    return str(folder)


def ids(url: str, shuffle: Any, epoch: int = 0, workers: int = 0, **options: Any) -> list[int]:
    dataset = pipeprof.open_dataset(
        url, batch_size=16, shuffle=shuffle, read=ONE_GROUP, **{"seed": 3, **options}
    )
    dataset.set_epoch(epoch)
    loader = DataLoader(dataset, batch_size=None, num_workers=workers)
    return [number for batch in loader for number in batch["id"].tolist()]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_order_has_every_row_once(
    files: str, order: str, workers: int, world_size: int
) -> None:
    rows = [
        row for rank in range(world_size)
        for row in ids(files, order, workers=workers, rank=rank, world_size=world_size)
    ]  # fmt: skip
    assert sorted(rows) == list(range(COUNT))


@pytest.mark.parametrize("order", ORDERS[1:])
def test_an_order_is_decided_by_seed_and_epoch(files: str, order: str) -> None:
    assert ids(files, order) == ids(files, order)
    assert ids(files, order) != ids(files, order, epoch=1)
    assert ids(files, order) != ids(files, order, seed=4)


def test_true_and_false_have_names(files: str) -> None:
    assert ids(files, False) == ids(files, "none") == list(range(COUNT))
    assert ids(files, True) == ids(files, "blocks")


def test_shards_move_and_their_rows_stay(files: str) -> None:
    rows = np.array(ids(files, "shards")).reshape(-1, ROWS)
    assert (np.diff(rows) == 1).all()
    assert sorted(rows[:, 0]) != list(rows[:, 0])


def test_blocks_move_and_their_rows_too(files: str) -> None:
    rows = np.array(ids(files, "blocks")).reshape(-1, ROWS)
    assert (np.sort(rows) == np.sort(rows)[:, :1] + np.arange(ROWS)).all(), "of one group each"
    assert (np.diff(rows) == 1).mean() < 0.2


def test_a_large_buffer_and_the_full_order_mix_all_rows(files: str) -> None:
    for order in ("buffer:1000", "full"):
        first = np.array(ids(files, order)[: COUNT // 2])
        # of 12 groups, half of the rows of each are expected: 20, with a deviation of 3
        counts = np.bincount(first // ROWS, minlength=FILES * GROUPS)
        assert counts.min() > 5, order
        assert counts.max() < 35, order


def test_a_full_order_may_repeat_and_drop_the_last(files: str) -> None:
    dataset = pipeprof.open_dataset(
        files, batch_size=64, shuffle="full", repeat=True, drop_last=True, read=ONE_GROUP
    )
    batches = iter(dataset)
    seen = [next(batches)["id"].tolist() for _ in range(2 * COUNT // 64)]
    assert {len(rows) for rows in seen} == {64}
    # two epochs but for the last batch of the second
    assert sum(rows.count(5) for rows in seen) in (1, 2)
    assert len({row for rows in seen for row in rows}) == COUNT


@pytest.mark.parametrize("read_ahead", [True, False])
def test_reading_ahead_changes_no_order(files: str, read_ahead: bool) -> None:
    read = pipeprof.ReadOptions(split_bytes=1, read_ahead=read_ahead)
    for order in ORDERS:
        dataset = pipeprof.open_dataset(files, batch_size=16, shuffle=order, seed=3, read=read)
        assert [n for batch in dataset for n in batch["id"].tolist()] == ids(files, order)


def test_images_are_read_in_any_order(tmp_path: Path) -> None:
    from PIL import Image

    for number in range(6):
        path = tmp_path / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(path)
    dataset = pipeprof.open_dataset(str(tmp_path), batch_size=6, shuffle="full")
    (batch,) = dataset
    assert len(batch["label"]) == 6


def test_files_of_arrow_are_read_in_any_order(tmp_path: Path) -> None:
    table = pa.table({"id": range(1000)})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    dataset = pipeprof.open_dataset(str(tmp_path), batch_size=50, shuffle="full")
    ids = [batch["id"].tolist() for batch in DataLoader(dataset, batch_size=None, num_workers=2)]
    assert sorted(number for batch in ids for number in batch) == list(range(1000))
    assert all(len({number // 100 for number in batch}) > 5 for batch in ids)


def test_formats_that_count_no_rows_have_no_full_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    with pytest.raises(UsageError, match=r"which these csv files do not say; use a buffer"):
        pipeprof.open_dataset(str(tmp_path), shuffle="full")


@pytest.mark.parametrize(("name", "row"), [("x.csv", b"1,2\n"), ("x.jsonl", b'{"a": 1}\n')])
def test_they_are_not_split_at_each_byte_to_find_that_out(
    name: str, row: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(row * 500_000)
    module = import_module(formats.FORMATS[name.rpartition(".")[2]])
    made, original = [], module.Split

    def split(*arguments: Any, **options: Any) -> Any:
        made.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(module, "Split", split)
    with pytest.raises(UsageError, match="needs the number of rows"):
        pipeprof.open_dataset(str(tmp_path), shuffle="full")
    assert len(made) < 5


def test_a_full_order_skips_nothing(files: str) -> None:
    with pytest.raises(UsageError, match="use on_error='fail'"):
        pipeprof.open_dataset(files, shuffle="full", on_error="skip")


@pytest.mark.parametrize("name", ["random", "buffer", "buffer:", "buffer:0", "buffer:-5", "full:3"])
def test_an_unknown_order_is_refused(files: str, name: str) -> None:
    with pytest.raises(UsageError, match=r"there is no order.*buffer:10000"):
        pipeprof.open_dataset(files, shuffle=name)


def numbers(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + rows))})


def test_a_buffer_holds_its_rows_and_hands_out_a_part_of_it_at_a_time() -> None:
    taken = 0

    def tables() -> Any:
        nonlocal taken
        for number in range(100):
            taken += 10
            yield numbers(10 * number, 10)

    out = 0
    for rows in buffered(tables(), 200, np.random.default_rng(0)):
        if taken < 1000:
            assert 200 < taken - out <= 210, "it hands out rows only while it is full"
        out += rows.num_rows
        assert rows.num_rows < 120
    assert out == 1000


def test_rows_leave_a_buffer_about_as_late_as_it_is_large() -> None:
    tables = (numbers(100 * number, 100) for number in range(200))
    rows = np.concatenate(
        [part["n"].to_numpy() for part in buffered(tables, 1000, np.random.default_rng(0))]
    )
    late = (np.arange(len(rows)) - rows)[5_000:15_000]
    assert late.std() == pytest.approx(1000, rel=0.3), "as of a buffer that gives single rows"


def test_numbered_batches_say_where_each_row_is_stored(files: str) -> None:
    for order in ORDERS:
        dataset = pipeprof.open_dataset(
            files, batch_size=16, shuffle=order, read=ONE_GROUP, transform=lambda batch: None
        )
        for batch in dataset.numbered():
            split, row = np.divmod(batch[ROW_NUMBER].numpy(), ROWS_OF_SPLIT)
            assert (split * ROWS + row == batch["id"].numpy()).all()
