"""Objects are planned several at a time, with the same result as one after another."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeprof import formats
from pipeprof.errors import CorruptData, FormatError, SchemaMismatch
from pipeprof.formats.base import ReadOptions
from pipeprof.loaders.bad_data import SkipCounter
from pipeprof.loaders.dataset.object_plans import ObjectPlanner, several
from pipeprof.model import OnError, Skipped
from pipeprof.storage import Buffer, ObjectInfo, Store
from pipeprof.storage.local import LocalStore
from tests.support.wait import PATIENCE_S


class Distant(LocalStore):
    """Local files, whose reads of several threads are answered at the same time."""

    one_at_a_time = False


class AnswersFour(Distant):
    """Answers the reads of four threads when all of them wait. The first object is read alone."""

    def __init__(self) -> None:
        super().__init__()
        self._four = threading.Barrier(4)

    def read(self, item: ObjectInfo, ranges: Sequence[tuple[int, int]]) -> list[Buffer]:
        if not item.url.endswith("part-0.parquet"):
            self._four.wait(PATIENCE_S)
        return super().read(item, ranges)


def written(folder: Path, count: int) -> list[ObjectInfo]:
    for number in range(count):
        pq.write_table(pa.table({"id": [number]}), folder / f"part-{number}.parquet")
    return Distant().find(str(folder))


def planner(store: Store, on_error: OnError = "fail") -> ObjectPlanner:
    skips = SkipCounter(on_error)
    return ObjectPlanner(formats.get("parquet"), store, ReadOptions(), skips)


def test_objects_after_the_first_are_planned_at_the_same_time(tmp_path: Path) -> None:
    items = written(tmp_path, 5)
    schema, plans = planner(AnswersFour()).plan_all(items, None, {}, "tensor", False)
    assert schema is not None
    assert schema.names == ["id"]
    assert [item for item, _ in plans] == items, "in the order of the objects"


def test_the_first_error_in_the_order_of_the_objects_is_raised(tmp_path: Path) -> None:
    items = written(tmp_path, 40)
    pq.write_table(pa.table({"id": ["a word"]}), tmp_path / "part-7.parquet")
    (tmp_path / "part-31.parquet").write_bytes(b"no footer" * 100)
    items = Distant().find(str(tmp_path))
    wrong = items.index(next(item for item in items if item.url.endswith("part-7.parquet")))
    damaged = items.index(next(item for item in items if item.url.endswith("part-31.parquet")))
    expected = SchemaMismatch if wrong < damaged else CorruptData
    for store in (Distant(), LocalStore()):
        with pytest.raises(expected):
            planner(store).plan_all(items, None, {}, "tensor", False)


def test_damaged_objects_are_skipped_and_counted(tmp_path: Path) -> None:
    written(tmp_path, 12)
    for number in (0, 5, 6):
        (tmp_path / f"part-{number}.parquet").write_bytes(b"no footer" * 100)
    items = Distant().find(str(tmp_path))
    skipping = planner(Distant(), "skip")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, plans = skipping.plan_all(items, None, {}, "tensor", False)
    assert len(plans) == 9
    assert len(caught) == 3
    assert skipping.skips.total == Skipped(rows=0, parts=0, objects=3)


def test_nothing_is_planned_after_an_error() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number:
            time.sleep(0.05)
        raise FormatError(f"object {number}")

    with pytest.raises(FormatError, match="object 0"):
        list(several(Distant(), work, range(10_000)))
    assert len(begun) < 10_000
