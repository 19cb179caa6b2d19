"""Draw a stretch of batches over time: one lane for main and one for each worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeprof.model import BatchLog
from pipeprof.report.document.charts import Timeline
from pipeprof.report.document.profile.timeline import at, paused_s
from pipeprof.report.html.charts import vega
from pipeprof.report.html.charts.vega import Datum, Spec
from pipeprof.units import format_duration

_COLOURS: Final = {
    "fetch": "var(--decode)",
    "transfer": "var(--transfer)",
    "ready": "var(--ready)",
    "step": "var(--step)",
    "pause": "var(--bar)",
    "awaited": vega.ACCENT,
}
"""Kind of span → colour, in the order of the legend. *Awaited* marks the wait in main, and in a
worker the spans of the batch that main waits for."""
_UPPER, _MIDDLE, _LOWER, _WHOLE = (0.12, 0.6), (0.62, 0.74), (0.76, 0.88), (0.12, 0.88)
"""Top and bottom within a lane: for fetch, transfer and ready of a worker, and for main."""


def timeline(data: Timeline) -> Spec:
    """Draw the lanes; the page zooms by setting the parameters ``from`` and ``to``."""
    log, stretch = data.log, data.stretch
    whole_s = log.done_s[stretch.last - 1] - log.asked_s[stretch.first]
    lanes = _lanes(data)
    rows = list(_rows(data, {lane: place for place, lane in enumerate(lanes)}))
    shown = [kind for kind in _COLOURS if any(row["kind"] == kind for row in rows)]
    axis = {"labelExpr": vega.SECONDS, "tickCount": 6, "grid": False}
    title = "time since the first of them"
    zoomed = {"domainMin": {"expr": "from"}, "domainMax": {"expr": "to"}}
    encoding = {
        "x": vega.quantity("x", title, axis, **zoomed, nice=False, zero=False),
        "x2": {"field": "x2"},
        "y": _lane_axis(["main", *(f"worker {lane}" for lane in lanes if lane >= 0)]),
        "y2": {"field": "y2"},
        "color": vega.fixed("kind", {kind: _COLOURS[kind] for kind in shown}, legend={}),
        "tooltip": vega.TIP,
    }
    rectangles = vega.layer("rect", encoding, clip=True)
    params = [{"name": "from", "value": 0}, {"name": "to", "value": whole_s},
              {"name": "whole", "value": whole_s}]  # fmt: skip
    height = max(16, min(34, 900 // len(lanes)))
    return vega.chart(rows, params=params, layer=[rectangles], height=height * len(lanes))


def _lanes(data: Timeline) -> list[int]:
    """Return -1 for main, then the workers that have a batch in the stretch, in order."""
    workers = set(data.log.worker[data.stretch.first : data.stretch.last])
    return [-1, *sorted(worker for worker in workers if worker >= 0)]


def _lane_axis(titles: list[str]) -> Spec:
    axis = {
        "values": [place + 0.5 for place in range(len(titles))], "grid": False, "ticks": False,
        "domain": False, "labelOverlap": True, "labelExpr": f"{titles!r}[floor(datum.value)]",
    }  # fmt: skip
    return vega.quantity("y", None, axis, domain=[0, len(titles)], reverse=True, nice=False)


def _rows(data: Timeline, placed: dict[int, int]) -> Iterator[Datum]:
    """Yield a rectangle for each span within the stretch."""
    log, stretch = data.log, data.stretch
    zero_s, last_s = log.asked_s[stretch.first], log.done_s[stretch.last - 1]
    for place in range(stretch.first, min(stretch.last + data.ahead, len(log.done_s))):
        for span in _spans(log, place):
            begin, end = max(span.begin_s, zero_s), min(span.end_s, last_s)
            if span.lane in placed and begin < end:
                top, bottom = span.place
                yield {
                    "kind": span.kind, "x": round(begin - zero_s, 6), "x2": round(end - zero_s, 6),
                    "y": round(placed[span.lane] + top, 2),
                    "y2": round(placed[span.lane] + bottom, 2), "tip": span.text,
                }  # fmt: skip


@dataclass(frozen=True)
class _Span:
    lane: int
    kind: str
    begin_s: float
    end_s: float
    text: str
    place: tuple[float, float] = _WHOLE


def _spans(log: BatchLog, place: int) -> Iterator[_Span]:
    """Yield the spans of one batch, in main and in the worker that fetched it."""
    asked, delivered, done = (c[place] for c in (log.asked_s, log.delivered_s, log.done_s))
    worker = log.worker[place] if log.worker else -2
    name = f"batch {log.index[place] if log.index else place:,}"
    fetched_by = f" for worker {worker}" if worker >= 0 else ""
    wait = f"{name}: main waited {format_duration(max(delivered - asked, 0))}{fetched_by}"
    yield _Span(-1, "awaited", asked, delivered, wait)
    paused = done - paused_s(log, place)  # drawn at the end: its place in the step is unknown
    step = f"{name}: step {format_duration(paused - delivered)}"
    yield _Span(-1, "step", delivered, paused, step)
    yield _Span(-1, "pause", paused, done, f"{name}: pause {format_duration(done - paused)}")
    begin, fetched = at(log.fetch_start_s, place), at(log.fetch_end_s, place)
    if worker < 0 or begin is None or fetched is None:
        return
    text = f"{name}: fetched in {format_duration(fetched - begin)} by worker {worker}"
    text += _parts(log, place)
    awaited = min(max(asked, begin), fetched)
    yield _Span(worker, "fetch", begin, awaited, text, _UPPER)
    yield _Span(worker, "awaited", awaited, fetched, f"{text}; main waited", _UPPER)
    sent, pinned = at(log.sent_s, place), at(log.pinned_s, place)
    arrived = pinned or at(log.arrived_s, place)
    if arrived is None:
        return
    # main receives a batch only when it needs one; a pin thread receives it at once
    arrived_at = arrived if pinned else min(sent or fetched, arrived)
    transfer = f"{name}: {format_duration(arrived - fetched)} from fetched to received"
    ready = f"{name}: ready for {format_duration(asked - arrived_at)}"
    yield _Span(
        worker, "transfer", fetched, min(arrived_at, max(asked, fetched)), transfer, _MIDDLE
    )
    yield _Span(worker, "ready", arrived_at, asked, ready, _LOWER)
    yield _Span(worker, "awaited", max(asked, fetched), min(arrived, delivered), transfer, _MIDDLE)


def _parts(log: BatchLog, place: int) -> str:
    """Return the known stages of the fetch with their durations, as text."""
    return "".join(
        f", {name} {format_duration(value)}"
        for name in ("read", "decode", "transform", "collate")
        if (value := at(getattr(log, f"{name}_s"), place)) is not None
    )
