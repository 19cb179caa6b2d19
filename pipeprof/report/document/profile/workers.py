"""The workers of a run, side by side."""

from __future__ import annotations

from statistics import median

from pipeprof.model import Profile, WorkerStats
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Stacks
from pipeprof.report.document.journey import WORKER_STAGES, busy_s, journey
from pipeprof.report.document.profile.stages import shares
from pipeprof.report.document.wording import times
from pipeprof.units import counted, format_duration

_SHOWN = 8
"""In a table; the chart has all."""
_UNEVEN = 1.25
"""A worker that takes so many times as long as the median is called slow."""


def workers(profile: Profile) -> doc.Section:
    name, title = "workers", "Workers side by side"
    found = profile.workers
    if not found:
        return doc.section(name, title, "Unknown: no worker was seen.", evidence=True)
    slowest = max(found, key=lambda worker: busy_s(worker.stages))
    middle_s = median(busy_s(worker.stages) for worker in found)
    ratio = busy_s(slowest.stages) / middle_s if middle_s > 0 else 1.0
    slow = slowest.index if ratio >= _UNEVEN else None
    text = f"Worker #{slow} takes {times(ratio)} as long as the median worker."
    if slow is None:
        of = counted(len(found), "worker")
        text = f"The slowest of {of} takes {times(ratio)} as long as the median."
    stages = {
        str(worker.index) if worker.index >= 0 else "main": shares(journey(worker.stages, 1))
        for worker in found
    }
    chart = doc.Chart("workers", title, text, Stacks("s", "mean per batch", stages))
    drawn = chart if any(stages.values()) else None
    remark = text if slow is not None else ""
    note = f"mean per batch, {len(found)} of them"
    return doc.section(name, title, drawn, _table(found, slow), remark, note=note, evidence=True)


def _named(found: tuple[WorkerStats, ...]) -> list[tuple[str, WorkerStats]]:
    """All of a few; of many the fastest, the median and the slowest."""
    if len(found) <= _SHOWN:
        return [("", worker) for worker in found]
    by_time = sorted(found, key=lambda worker: busy_s(worker.stages))
    named = {"fastest ": by_time[0], "median ": by_time[len(by_time) // 2], "slowest ": by_time[-1]}
    return list(named.items())


def _table(found: tuple[WorkerStats, ...], slow: int | None) -> doc.Table:
    seen = [s for s in WORKER_STAGES if any(s in worker.stages for worker in found)]
    longest = max(busy_s(worker.stages) for worker in found)
    return doc.Table(
        (doc.Column("worker", "name"), doc.Column("batches", spare=2),
         *(doc.Column(name, spare=3) for name in seen), doc.Column("in all", spare=1)),
        tuple(
            _row(before, worker, seen, longest, worker.index == slow)
            for before, worker in _named(found)
        ),
    )  # fmt: skip


def _row(before: str, worker: WorkerStats, seen: list[str], longest: float, slow: bool) -> doc.Row:
    stages = worker.stages
    busy = busy_s(stages)
    return doc.row(
        f"{before}#{worker.index}" if worker.index >= 0 else "main",
        f"{worker.batches:,}",
        *(format_duration(stages[name].mean_s) if name in stages else "" for name in seen),
        doc.Cell(format_duration(busy), share=busy / longest if longest > 0 else 0.0),
        tone="bad" if slow else "",
    )
