"""The benchmark of readers: that all are asked for the same, and what its figures mean."""

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.readers import bars, faster, judge, open_all
from benchmarks.readers_peers import OURS, Process, Reader
from benchmarks.readers_shapes import SHAPES, Shape, write

SMALL = Shape(
    "small",
    "a bit of everything",
    lambda: pa.table(
        {
            "id": [1, 2, 3],
            "skipped": [0, 0, 0],
            "price": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "skipped too": [0, 0, 0],
            "tokens": [[1, 2], [3], []],
        }
    ),
    ("parquet",),
    every=2,
    parquet_copies=1,
)


def test_readers_give_the_same_columns_and_say_what_a_pass_took(tmp_path: Path) -> None:
    shape = SMALL
    types = {"skipped": "int64", "skipped too": "int64"}
    assert shape.types() == types
    path = write(shape, "parquet", tmp_path)
    asked = {"id": "int64", "price": "float32", "tokens": "list<int64>"}
    job = {"path": str(path), "types": asked, "batch": 2}
    answers = []
    for reader in (OURS, Reader("pyarrow row groups")):
        process = Process(reader)
        try:
            answers.append(process.ask(**job, describe=True))
            measured = process.ask(**job, describe=False)
            with pytest.raises(RuntimeError, match="gone"):
                process.ask(**{**job, "path": f"{path}.gone.parquet"}, describe=False)
        finally:
            process.close()
        assert measured["rows"] == 3
        assert measured["cpu_s"] > 0
    assert answers[0]["sums"] == answers[1]["sums"] == {"id": 6, "price": 4.5, "tokens": 6.005}
    assert answers[0]["types"] == {"id": "int64", "price": "float32", "tokens": "int64"}
    assert answers[1]["types"] == answers[0]["types"]


def test_a_reader_that_cannot_be_had_is_left_out_loudly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> str:
        raise OSError("no network")

    monkeypatch.setattr("benchmarks.readers_peers.python_of", refuse)
    assert open_all([Reader("polars")], {}, None) == {}  # type: ignore[arg-type]
    assert "polars                NOT MEASURED (no network)" in capsys.readouterr().out


def test_ours_is_so_many_times_as_fast_by_cpu_time_on_one_core() -> None:
    peer, threaded = Reader("polars"), Reader("polars", 2)
    passes = {
        OURS: [{"cpu_s": 2.0, "wall_s": 4.0, "rows": 1}] * 8,
        peer: [{"cpu_s": 3.0, "wall_s": 400.0, "rows": 1}] * 8,
        threaded: [{"cpu_s": 300.0, "wall_s": 2.0, "rows": 1}] * 8,
    }
    assert faster(passes, peer).middle == 1.5
    assert faster(passes, threaded).middle == 0.5
    assert (faster(passes, peer).low, faster(passes, peer).high) == (1.5, 1.5)


def test_a_bar_is_judged_against_the_fastest_reader_of_its_library() -> None:
    def took(cpu_s: float) -> list[dict[str, float]]:
        return [{"cpu_s": cpu_s, "wall_s": cpu_s, "rows": 1}] * 8

    passes = {
        OURS: took(1.0),
        Reader("pyarrow stream"): took(9.0),
        Reader("pyarrow dataset"): took(0.97),
        Reader("polars"): took(0.1),
    }
    floats, images = (
        next(shape for shape in SHAPES if shape.name == n) for n in ("floats", "images")
    )
    assert bars("csv", floats) == [("pyarrow", 0.95)]
    assert judge(passes, "pyarrow", 0.95) == "met"
    assert judge(passes, "pyarrow", 0.98) == "MISSED"
    assert judge(passes, "tf.data", 1.5) == "not judged"
    assert [library for library, _ in bars("tfrecord", floats)] == ["tf.data", "tfrecord"]
    assert bars("tfrecord", images) == []


def test_shapes_have_the_columns_they_ask_for() -> None:
    wide = next(shape for shape in SHAPES if shape.name == "wide")
    assert len(wide.types()) == 10
    assert set(wide.types().values()) == {"float32"}
