"""Formats, readers, orders of rows and a cache in one sweep."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeprof import formats
from pipeprof.bench_data.generate import GenerateSpec, generate
from pipeprof.errors import UsageError
from pipeprof.model import ConversionSpec, SweepResult, SweepSpec
from pipeprof.report.document.build import full_report
from pipeprof.sweep.plan import check, plan_remaining, plan_sweep
from pipeprof.sweep.runner import run_sweep
from tests.sweep.test_convert import WritingListener
from tests.sweep.test_sweep import saved_in


@pytest.fixture
def data(tmp_path: Path) -> str:
    """Eight CSV files of 2,000 rows."""
    folder = tmp_path / "data"
    folder.mkdir()
    table = pa.record_batch({"id": pa.array(range(2_000), pa.int64())})
    for number in range(8):
        encoder = formats.get("csv").encoder(table.schema)
        (folder / f"{number}.csv").write_bytes(encoder.write(table) + encoder.finish())
    return str(folder)


def spec_for(*urls: str, asked: str = "parquet,tfrecord", **changes: Any) -> SweepSpec:
    conversion = ConversionSpec(tuple(asked.split(",")), ("local",), 100_000_000)
    spec = SweepSpec(
        urls=urls, workers=(0,), prefetch=(2,), batch_sizes=(64,), step_s=1e-3,
        trial_s=0.1, warmup_s=0.02, conversion=conversion,
    )  # fmt: skip
    return dataclasses.replace(spec, **changes)


def tried(result: SweepResult) -> list[tuple[str, str | None]]:
    return [(trial.format, trial.reader) for trial in result.trials]


def test_each_copy_is_read_by_each_reader_that_knows_it(data: str, tmp_path: Path) -> None:
    plan = plan_sweep(spec_for(data, f"polars::{data}"), tmp_path / "out")
    result = run_sweep(plan, WritingListener()).result
    assert tried(result) == [
        ("csv", None), ("csv", "polars"), ("parquet", None), ("parquet", "polars"),
        ("tfrecord", None), ("csv", None),
    ]  # fmt: skip
    assert result.finished
    assert result.conversion is not None
    assert (result.conversion.baseline, result.conversion.control) == (0, 5)
    assert [gain.trial for gain in result.conversion.gains] == [1, 2, 3, 4]
    assert not (tmp_path / "out-data").exists()


def test_a_copy_that_no_reader_knows_is_read_by_its_own_decoder(data: str, tmp_path: Path) -> None:
    plan = plan_sweep(spec_for(f"polars::{data}", asked="tfrecord"), tmp_path / "out")
    result = run_sweep(plan, WritingListener()).result
    assert tried(result) == [("csv", "polars"), ("tfrecord", None), ("csv", "polars")]


def test_copies_are_searched_by_prediction_too(data: str, tmp_path: Path) -> None:
    wide = spec_for(data, asked="tfrecord", workers=(0, 1, 2, 3), prefetch=(2, 4, 8))
    plan = plan_sweep(dataclasses.replace(wide, exhaustive=False, trial_s=0.3), tmp_path / "out")
    assert plan.initial.planned == 1 + 2 * 10
    result = run_sweep(plan, WritingListener()).result
    assert result.finished
    assert len(result.trials) < result.planned
    copies = {copy.url for copy in result.conversion.copies} if result.conversion else set()
    assert copies & {each.url for each in result.untried}
    assert result.trials[-1].url == data
    assert result.conversion is not None
    assert result.conversion.control == len(result.trials) - 1


def test_a_form_that_cannot_be_the_answer_is_searched_no_further(tmp_path: Path) -> None:
    """Python's own decoder takes ten times as long, and two cores make up for two of these."""
    data = str(tmp_path / "data")
    generate(GenerateSpec(data, "wide", "csv", 4_000_000, 1))
    spec = spec_for(
        data, f"python::{data}", asked="tfrecord", workers=(0, 1, 2, 3), prefetch=(2, 4, 8),
        exhaustive=False, trial_s=0.3, step_s=0.0, columns=("x0", "x1"),
    )  # fmt: skip
    result = run_sweep(plan_sweep(spec, tmp_path / "out"), WritingListener()).result
    assert result.finished
    slow = [trial for trial in result.trials if trial.reader == "python"]
    assert len(slow) <= 2 < sum(trial.url == data for trial in result.trials[:-1])
    assert result.conversion is not None
    gain = next(each for each in result.conversion.gains if each.url == slow[0].url)
    assert not gain.searched
    limit = max(each.at_most for each in result.untried if each.url == gain.url)
    base = result.trials[result.conversion.baseline or 0]
    assert gain.speed < gain.speed_interval[1] <= limit / base.samples_per_s < 1
    assert f"≤ {gain.speed_interval[1]:.2f}×" in str(full_report(result))


def test_orders_and_a_cache_are_measured_on_the_copies_too(data: str, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    spec = spec_for(data, asked="parquet", shuffle=("none", "full"), local_cache=cache)
    result = run_sweep(plan_sweep(spec, tmp_path / "out"), WritingListener()).result
    assert result.conversion is not None
    [copy] = result.conversion.copies
    assert set(result.row_orders) == set(result.local_cache) == {data, copy.url}
    idle = WritingListener()
    assert run_sweep(plan_remaining(tmp_path / "out"), idle).result == result
    assert idle.written == [], "nothing is left to measure"


def test_what_was_not_measured_is_when_the_sweep_is_resumed(data: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spec = spec_for(data, asked="parquet,tfrecord", shuffle=("none", "shards"))
    whole = run_sweep(plan_sweep(spec, out), WritingListener()).result
    assert whole.conversion is not None
    last = whole.conversion.copies[-1].url
    some = {url: each for url, each in whole.row_orders.items() if url != last}
    dataclasses.replace(whole, row_orders=some).save(out / "sweep.json")
    listener = WritingListener()
    assert set(run_sweep(plan_remaining(out), listener).result.row_orders) == set(whole.row_orders)
    assert listener.written == ["tfrecord"]
    assert saved_in(out).trials == whole.trials


@pytest.mark.parametrize(
    ("urls", "words"),
    [
        (("a", "b"), "--formats converts one data set"),
        (("a", "polars::b"), "--formats converts one data set"),
        (("a", "a"), "--formats converts one data set"),
        (("a", "pillow::a"), "pillow decodes images, and copies hold their bytes"),
    ],
)
def test_what_cannot_be_compared(urls: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(spec_for(*urls))
