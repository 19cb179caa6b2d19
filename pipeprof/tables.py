"""Convert stages, batches and trials to tables of Arrow and pandas.

A column's name ends in its unit, as everywhere (``_s``, ``_per_s``, bytes); null is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias

from pipeprof.errors import PipeprofError, UsageError
from pipeprof.model import BatchLog, Profile, StageStats, SweepResult, TableName, Trial
from pipeprof.report.document.journey import journey

if TYPE_CHECKING:
    import pandas
    import pyarrow

Table: TypeAlias = "pyarrow.Table"
Frame: TypeAlias = "pandas.DataFrame"

_INTEGER_COLUMNS = ("index", "epoch", "nth", "epoch_batches", "worker", "samples")
_TIME_COLUMNS = ("mean_s", "p50_s", "p95_s", "p99_s", "total_s")


def profile_table(profile: Profile, name: TableName = "stages") -> Table:
    """Return one row per stage (``stages``), per worker and stage (``workers``), or per recent
    batch (``batches``). Raises `UsageError` for another name."""
    tables = {"stages": _stages, "batches": _batches, "workers": _workers}
    if name not in tables:
        raise UsageError(f"a profile has no table {name!r}; it has {', '.join(tables)}.")
    return tables[name](profile)


def trials_table(sweep: SweepResult) -> Table:
    """Return one row per trial, in the order in which they ran."""
    return _rows([_trial(trial) for trial in sweep.trials], _TRIAL_COLUMNS)


def as_pandas(table: Table) -> Frame:
    """Return ``table`` as a DataFrame. Raises `PipeprofError` when pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise PipeprofError(
            "to_pandas() needs pandas, which is not installed: pip install pandas, or use "
            "to_arrow()."
        ) from None
    return table.to_pandas()


def _stages(profile: Profile) -> Table:
    rows = [
        {"stage": row.name, "where": row.where, "share": row.share, **_figures(row.stats)}
        for row in journey(profile.stages, profile.config.num_workers)
    ]
    leading = {"stage": "string", "where": "string", "share": "float64"}
    return _rows(rows, {**leading, **_STATS_COLUMNS})


def _workers(profile: Profile) -> Table:
    rows = [
        {"worker": worker.index, "worker_batches": worker.batches, "stage": stage,
         **_figures(stats)}
        for worker in profile.workers
        for stage, stats in worker.stages.items()
    ]  # fmt: skip
    leading = {"worker": "int64", "worker_batches": "int64", "stage": "string"}
    return _rows(rows, {**leading, **_STATS_COLUMNS})


_STATS_COLUMNS = {
    "batches": "int64", **dict.fromkeys(_TIME_COLUMNS, "float64"), "bytes": "int64",
    "requests": "int64", "source": "string",
}  # fmt: skip


def _figures(stats: StageStats) -> dict[str, Any]:
    known = stats.source != "unknown"
    times = {name: getattr(stats, name) if known else None for name in _TIME_COLUMNS}
    return {
        "batches": stats.count, **times, "bytes": stats.bytes, "requests": stats.requests,
        "source": stats.source,
    }  # fmt: skip


def _batches(profile: Profile) -> Table:
    import pyarrow as pa

    log, count = profile.batches, len(profile.batches.index)
    columns = {
        field.name: pa.array(
            getattr(log, field.name) or [None] * count,
            pa.int64() if field.name in _INTEGER_COLUMNS else pa.float64(),
        )
        for field in fields(BatchLog)
    }
    return pa.table(columns)


_TRIAL_COLUMNS = {
    "url": "string", "format": "string", "num_workers": "int64", "prefetch_factor": "int64",
    "batch_size": "int64", "samples_per_s": "float64", "samples_per_s_low": "float64",
    "samples_per_s_high": "float64", "spread": "float64", "starved_fraction": "float64",
    "starved_fraction_low": "float64", "starved_fraction_high": "float64", "verdict": "string",
    "bottleneck": "string", "cache": "string", "bytes_per_sample": "float64",
    "physical_bytes_per_sample": "float64", "cpu_s_per_sample": "float64",
    "decode_s_per_sample": "float64", "demand_samples_per_s": "float64",
    "predicted_samples_per_s": "float64", "profile": "string",
}  # fmt: skip


def _trial(trial: Trial) -> dict[str, Any]:
    config = trial.config
    low, high = trial.interval
    starved_low, starved_high = trial.starved_interval
    computed = {
        "num_workers": config.num_workers,
        "prefetch_factor": config.prefetch_factor,
        "batch_size": config.batch_size,
        "samples_per_s_low": low,
        "samples_per_s_high": high,
        "starved_fraction_low": starved_low,
        "starved_fraction_high": starved_high,
        "cache": trial.cache.state,
    }
    others = {name: getattr(trial, name) for name in _TRIAL_COLUMNS if name not in computed}
    return {name: {**computed, **others}[name] for name in _TRIAL_COLUMNS}


def _rows(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> Table:
    import pyarrow as pa

    # a schema, so that an empty table has its columns and an unknown one its type
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    return pa.Table.from_pylist([dict(row) for row in rows], schema)
