"""Compare the workers of a run, and name a slow one."""

from __future__ import annotations

from statistics import median

from pipeprof.model import Profile, WorkerStats
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Stacks
from pipeprof.report.document.journey import WORKER_STAGES, busy_s, journey
from pipeprof.report.document.profile.stages import mean_seconds
from pipeprof.report.document.wording import times
from pipeprof.units import counted, format_duration

_MOST_ROWS = 8
"""Most workers in the table; the chart has all."""
_SLOW_RATIO = 1.25
"""A worker that takes this many times the median is called slow."""


def workers(profile: Profile) -> doc.Section:
    """Return the mean times of the workers, as a chart and a table."""
    name, title = "workers", "Workers side by side"
    stats = profile.workers
    if not stats:
        return doc.section(name, title, "Unknown: no worker was measured.", evidence=True)
    slowest = max(stats, key=lambda worker: busy_s(worker.stages))
    median_s = median(busy_s(worker.stages) for worker in stats)
    ratio = busy_s(slowest.stages) / median_s if median_s > 0 else 1.0
    slow = slowest.index if ratio >= _SLOW_RATIO else None
    text = f"Worker #{slow} takes {times(ratio)} as long as the median worker."
    if slow is None:
        count = counted(len(stats), "worker")
        text = f"The slowest of {count} takes {times(ratio)} as long as the median."
    stages = {
        str(worker.index) if worker.index >= 0 else "main": mean_seconds(journey(worker.stages, 1))
        for worker in stats
    }
    chart = doc.Chart("workers", title, text, Stacks("s", "mean per batch", stages))
    drawn = chart if any(stages.values()) else None
    remark = text if slow is not None else ""
    note = f"mean per batch of {counted(len(stats), 'worker')}"
    return doc.section(name, title, drawn, _table(stats, slow), remark, note=note, evidence=True)


def _rows_to_show(stats: tuple[WorkerStats, ...]) -> list[tuple[str, WorkerStats]]:
    """Return all of a few workers; of many the fastest, the median and the slowest, so named."""
    if len(stats) <= _MOST_ROWS:
        return [("", worker) for worker in stats]
    by_time = sorted(stats, key=lambda worker: busy_s(worker.stages))
    named = {"fastest ": by_time[0], "median ": by_time[len(by_time) // 2], "slowest ": by_time[-1]}
    return list(named.items())


def _table(stats: tuple[WorkerStats, ...], slow: int | None) -> doc.Table:
    measured = [s for s in WORKER_STAGES if any(s in worker.stages for worker in stats)]
    longest = max(busy_s(worker.stages) for worker in stats)
    return doc.Table(
        (doc.Column("worker", "name"), doc.Column("batches", spare=2),
         *(doc.Column(name, spare=3) for name in measured), doc.Column("total", spare=1)),
        tuple(
            _row(rank, worker, measured, longest, worker.index == slow)
            for rank, worker in _rows_to_show(stats)
        ),
    )  # fmt: skip


def _row(rank: str, worker: WorkerStats, shown: list[str], longest: float, slow: bool) -> doc.Row:
    stages = worker.stages
    busy = busy_s(stages)
    return doc.row(
        f"{rank}#{worker.index}" if worker.index >= 0 else "main",
        f"{worker.batches:,}",
        *(format_duration(stages[name].mean_s) if name in stages else "" for name in shown),
        doc.Cell(format_duration(busy), share=busy / longest if longest > 0 else 0.0),
        tone="bad" if slow else "",
    )
