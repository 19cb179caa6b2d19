"""The workers of a run, side by side."""

from __future__ import annotations

from collections.abc import Iterator

from pipeprof.model import Profile, WorkerStats
from pipeprof.report.html import charts
from pipeprof.report.html.shapes import Chart, Column, Lines, Section, Table, row
from pipeprof.report.html.vega import Datum
from pipeprof.report.journey import WORKER_STAGES, busy_s, journey
from pipeprof.report.phrases import times
from pipeprof.units import counted, format_duration

_SHOWN = 8
"""In a table; the chart has all."""
_UNEVEN = 1.25
"""A worker that takes so many times as long as the median is said to be slow."""


def side_by_side(profile: Profile) -> Section:
    title = "Workers side by side"
    workers = profile.workers
    if not workers:
        return Section("workers", title, "", (Lines(("Unknown: no worker was seen.",)),))
    by_time = sorted(workers, key=lambda worker: busy_s(worker.stages))
    middle, slowest = by_time[len(by_time) // 2], by_time[-1]
    ratio = busy_s(slowest.stages) / (busy_s(middle.stages) or 1.0)
    named = {worker.index: "" for worker in workers}
    if len(workers) > _SHOWN:
        named = {by_time[0].index: "fastest ", middle.index: "median ", slowest.index: "slowest "}
    slow = slowest.index if ratio >= _UNEVEN else None
    if slow is not None:
        told = f"Worker #{slow} takes {times(ratio)} as long as the median worker."
    else:
        of = counted(len(workers), "worker")
        told = f"The slowest of {of} takes {times(ratio)} as long as the median."
    table = _table(title, workers, named, slow)
    data = list(_data(workers))
    if not data:
        return Section("workers", title, "mean per batch", (table,))
    order = [*charts.FIRST, *(each.value for each in WORKER_STAGES)]
    known = [name for name in dict.fromkeys(order) if any(d["stage"] == name for d in data)]
    picture = Chart("workers", title, told, charts.workers(data, known))
    return Section("workers", title, f"mean per batch, {len(workers)} of them", (picture, table))


def _table(
    title: str, workers: tuple[WorkerStats, ...], named: dict[int, str], slow: int | None
) -> Table:
    """Of those that are ``named``: index → what stands before it."""
    seen = [s.value for s in WORKER_STAGES if any(s in worker.stages for worker in workers)]
    by_index = {worker.index: worker for worker in workers}
    return Table(
        title,
        (Column("worker", right=False), Column("batches"), *(Column(name) for name in seen)),
        tuple(
            row(
                f"{before}#{index}" if index >= 0 else "main",
                f"{by_index[index].batches:,}",
                *(format_duration(stages[name].mean_s) if name in stages else "" for name in seen),
                tone="worst" if index == slow else "",
            )
            for index, before in named.items()
            for stages in (by_index[index].stages,)
        ),
    )


def _data(workers: tuple[WorkerStats, ...]) -> Iterator[Datum]:
    for worker in workers:
        who = str(worker.index) if worker.index >= 0 else "main"
        parts = charts.segments(journey(worker.stages, 1))
        for order, (name, seconds) in enumerate(parts.items()):
            tip = f"{who}: {name} {format_duration(seconds)} of a batch"
            yield {"worker": who, "stage": name, "seconds": seconds, "order": order, "tip": tip}
