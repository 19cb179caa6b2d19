"""Stages, batches, workers and trials as tables."""

import sys
from dataclasses import fields

import pyarrow as pa
import pytest

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.model import BatchLog
from tests.samples import sample_profile
from tests.stage_samples import sample_workers, stage_stats
from tests.support.requirements import missing
from tests.sweep_samples import sample_sweep

UNITS = ("_s", "_per_s", "bytes", "_per_sample", "share", "fraction", "spread")


def test_stages_come_in_the_order_in_which_a_batch_passes_them():
    profile = sample_profile()
    rows = profile.to_arrow().to_pylist()
    assert [row["stage"] for row in rows][:4] == ["fetch", "read", "decode", "transform"]
    (read,) = [row for row in rows if row["stage"] == "read"]
    stats = profile.stages["read"]
    assert read == {
        "stage": "read", "where": "worker", "share": read["share"], "batches": stats.count,
        "mean_s": stats.mean_s, "p50_s": stats.p50_s, "p95_s": stats.p95_s, "p99_s": stats.p99_s,
        "total_s": stats.total_s, "bytes": stats.bytes, "requests": stats.requests,
        "source": "measured",
    }  # fmt: skip
    apart = {"fetch", "collate", "transfer", "reorder", "ready", "step"}
    assert sum(row["share"] for row in rows if row["stage"] in apart) == pytest.approx(1)


def test_what_is_unknown_is_null():
    unknown = sample_profile(stages={"fetch": stage_stats(123.0, source="unknown")})
    (row,) = unknown.to_arrow("stages").to_pylist()
    assert [row[name] for name in ("mean_s", "p99_s", "total_s", "share")] == [None] * 4


def test_batches_have_all_columns_of_the_log_however_little_is_known():
    log = sample_profile().batches
    table = sample_profile().to_arrow("batches")
    assert table.column_names == [field.name for field in fields(BatchLog)]
    assert table["delivered_s"].to_pylist() == list(log.delivered_s)
    assert table["index"].type == pa.int64()
    assert log.h2d_s == ()
    assert table["h2d_s"].type == pa.float64()
    assert table["h2d_s"].null_count == len(log.index) == table.num_rows
    none = sample_profile(batches=BatchLog()).to_arrow("batches")
    assert (none.num_rows, none.schema) == (0, table.schema)


def test_workers_have_a_row_for_each_stage():
    rows = sample_profile(workers=sample_workers(3, slow=1)).to_arrow("workers").to_pylist()
    assert [row["worker"] for row in rows] == [0] * 5 + [1] * 5 + [2] * 5
    fetch_s = [row["mean_s"] for row in rows if row["stage"] == "fetch"]
    assert fetch_s[1] == max(fetch_s)


def test_trials_have_a_row_each():
    sweep = sample_sweep()
    table = sweep.to_arrow()
    assert table.num_rows == len(sweep.trials)
    first, row = sweep.trials[0], table.to_pylist()[0]
    assert row["num_workers"] == first.config.num_workers
    assert (row["samples_per_s_low"], row["samples_per_s_high"]) == first.interval
    assert row["cache"] == first.cache.state
    assert sample_sweep(trials=(), advice=()).to_arrow().schema == table.schema


@pytest.mark.parametrize("table", ["stages", "workers", "trials"])
def test_every_figure_has_its_unit_in_its_name(table):
    schema = (sample_sweep() if table == "trials" else sample_profile()).to_arrow(
        *([table] if table != "trials" else [])
    ).schema  # fmt: skip
    figures = [field.name for field in schema if field.type == pa.float64()]
    assert figures
    for name in figures:
        plain = name.removesuffix("_low").removesuffix("_high")
        assert plain.endswith(UNITS), name


def test_an_unknown_table_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="no table 'blame'; it has stages, batches, workers"):
        sample_profile().to_arrow("blame")


def test_pandas_gets_the_same_or_is_named_where_it_is_missing(monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "pandas", None)
        with pytest.raises(PipeprofError, match=r"needs pandas, .* pip install pandas"):
            sample_profile().to_pandas()
    try:
        import pandas  # noqa: F401
    except ImportError:
        missing("pandas")
    frame = sample_profile().to_pandas()
    assert frame["mean_s"].tolist() == sample_profile().to_arrow()["mean_s"].to_pylist()
    assert sample_sweep().to_pandas().shape == sample_sweep().to_arrow().shape
    assert sample_profile().to_pandas("batches")["h2d_s"].isna().all()
