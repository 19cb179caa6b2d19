"""A long row group comes part by part: the same rows and errors as at once, and no byte more."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import pipeprof
from pipeprof.formats import get
from pipeprof.formats.base import AHEAD, Need, Range, ReadOptions
from pipeprof.formats.compiled import SWITCH
from tests.contracts.format_contract import Bytes, plan
from tests.formats.test_parquet_pages import outcome, written
from tests.needs import missing

PARQUET = get("parquet")
PARTS, WHOLE = ReadOptions(block_bytes=110_000), ReadOptions(block_bytes=2**30)


@pytest.fixture(scope="module", autouse=True)
def numba() -> None:
    if find_spec("numba") is None:
        missing("numba is not installed")


def table(rows: int = 9000) -> pa.Table:
    rng = np.random.default_rng(0)
    columns = {f"f{n}": rng.normal(size=rows).astype(np.float32) for n in range(8)}
    words = [f"word {n % 700}" for n in range(rows)]
    nulls = pa.array([None if n % 7 == 0 else n for n in range(rows)])
    return pa.table({**columns, "words": words, "nulls": nulls})


def needs(data: bytes, options: ReadOptions, columns: Sequence[str]) -> tuple[list[Need], pa.Table]:
    """Of a file of one split: what is asked for, one after another, and the rows."""
    source = Bytes(data)
    made = plan(PARQUET, source, columns, options=options)
    assert made.schema is not None
    [split] = made.splits
    decoding = PARQUET.decode(len(data), split, made.schema, options)
    asked, rows = list[Need](), list[pa.RecordBatch]()
    answer: list[bytes] | None = None
    try:
        while True:
            said, answer = decoding.send(answer), None
            if isinstance(said, Need):
                asked.append(said)
                answer = [source.read(*each) for each in said.ranges]
            else:
                assert isinstance(said, pa.RecordBatch)
                rows.append(said)
    except StopIteration:
        return asked, pa.Table.from_batches(rows)


def test_each_part_is_asked_for_by_itself_and_told_before() -> None:
    rows = table().drop_columns("nulls")
    asked, found = needs(written(rows), PARTS, rows.column_names)
    assert found.equals(rows)
    [footer, first], *later = [need.ranges for need in asked]
    parts: list[Range] = [first, *(part for (part,) in later)]
    assert len(parts) == 4
    assert max(length for _, length in parts) <= PARTS.block_bytes
    assert all(sum(one) == start for one, (start, _) in pairwise(parts))
    for number, need in enumerate(asked):
        assert need.then == tuple(parts[number + 1 :][:AHEAD])
    [all_at_once], _ = needs(written(rows), WHOLE, rows.column_names)
    assert sum(length for _, length in all_at_once.ranges[1:]) == sum(n for _, n in parts)
    assert all_at_once.ranges[0] == footer


def test_what_arrow_reads_is_not_asked_for_again() -> None:
    rows = table()
    asked, found = needs(written(rows), PARTS, rows.column_names)
    assert found.equals(rows)
    ranges = [each for need in asked for each in need.ranges]
    assert len(set(ranges)) == len(ranges) == 1 + 5


def test_columns_that_lie_apart_and_row_groups_that_are_short_come_at_once() -> None:
    rows = table()
    apart = ["f0", "f2", "f4", "f6"]
    options = ReadOptions(block_bytes=50_000, gap_bytes=0)
    [need], found = needs(written(rows), options, apart)
    assert len(need.ranges) == 1 + len(apart)
    assert found.equals(rows.select(apart))
    [need], found = needs(written(rows, row_group_size=1000), PARTS, rows.column_names)
    assert found.equals(rows)


def test_without_kernels_arrow_reads_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "0")
    rows = table(9001)  # with a footer that nobody has read before
    [need], found = needs(written(rows), PARTS, rows.column_names)
    assert found.equals(rows)
    assert len(need.ranges) == 2


def test_damage_is_told_as_at_once() -> None:
    sound, told = written(table(3000), write_page_checksum=True), 0
    options = ReadOptions(block_bytes=30_000)
    assert outcome(sound, options) == outcome(sound, WHOLE)
    for seed in range(60):
        rng, data = Random(seed), bytearray(sound)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(4, len(data) - 4000)] ^= 1 << rng.randrange(8)
        expected = outcome(bytes(data), WHOLE)
        assert outcome(bytes(data), options) == expected, seed
        told += len(expected[0]) == 3
    assert told > 30


@pytest.mark.parametrize("read_ahead", [True, False])
def test_batches_of_a_file_that_is_read_in_parts(tmp_path: Path, read_ahead: bool) -> None:
    rows = table()
    (tmp_path / "long.parquet").write_bytes(written(rows))
    options = ReadOptions(block_bytes=60_000, read_ahead=read_ahead)
    found = [*pipeprof.open_dataset(str(tmp_path), batch_size=1000, read=options)]
    assert len(found) == 9
    for name in ("f0", "f7"):
        values = np.concatenate([batch[name].numpy() for batch in found])
        assert (values == rows[name].to_numpy()).all()
