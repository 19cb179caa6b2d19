"""How fast batches came and how much main waited, over the batches that a profile keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pipeprof.model import BatchLog
from pipeprof.report.html.shapes import Chart
from pipeprof.report.html.timeline import Stretch, paused_s
from pipeprof.report.html.vega import ACCENT, COUNTS, SECONDS, Spec, chart
from pipeprof.units import counted, format_count, format_duration, format_share

_PARTS = 100
"""At most: points of a line."""
_LEAST = 4
"""Batches of a part."""


@dataclass(frozen=True)
class Part:
    """Consecutive batches."""

    begin_s: float
    """Since the first batch kept was asked for."""
    end_s: float
    samples_per_s: float | None
    """``None``: it is not known how many samples batches had."""
    wait_share: float
    """0..1 of the time."""


def parts(log: BatchLog) -> list[Part]:
    """Of as many batches each, but for the last, which has what is left too."""
    known = min(len(log.asked_s), len(log.delivered_s), len(log.done_s))
    each = max(_LEAST, -(-known // _PARTS))
    zero_s = log.asked_s[0] if known else 0.0
    found = []
    for first in range(0, known - each + 1, each):
        last = first + each if first + 2 * each <= known else known
        begin, end = log.asked_s[first], log.done_s[last - 1]
        waits = zip(log.asked_s[first:last], log.delivered_s[first:last], strict=True)
        turns = [
            (log.asked_s[place] + paused_s(log, place), log.done_s[place])
            for place in range(first, last)
        ]
        samples = sum(log.samples[first:last]) if len(log.samples) >= last else None
        whole = sum(max(done - asked, 0.0) for asked, done in turns)
        if end > begin and whole > 0:
            found.append(Part(
                begin - zero_s, end - zero_s, samples / whole if samples else None,
                sum(max(delivered - asked, 0.0) for asked, delivered in waits) / whole,
            ))  # fmt: skip
    return found


def over_time(log: BatchLog, stretch: Stretch) -> list[Chart]:
    """What is known of both; nothing of a run of a few batches."""
    found = parts(log)
    if len(found) < 2:
        return []
    zero_s = log.asked_s[0]
    band = (log.asked_s[stretch.first] - zero_s, log.done_s[stretch.last - 1] - zero_s)
    span = f"{counted(len(found), 'part')} in {format_duration(found[-1].end_s)}"
    shares = [part.wait_share for part in found]
    told = (
        f"In the median part main waited {format_share(median(shares))} of the time, in all "
        f"{format_share(min(shares))} to {format_share(max(shares))}. Shaded: the stretch below."
    )
    waiting = Chart("waiting", "Waiting over time", told, _area(found, band))
    rates = [part.samples_per_s for part in found if part.samples_per_s is not None]
    if not rates:
        return [waiting]
    told = (
        f"{format_count(median(rates))} samples/s in the median part, {format_count(min(rates))} "
        f"to {format_count(max(rates))} in all; {span}."
    )
    return [Chart("pace", "Samples/s over time", told, _line(found, band)), waiting]


def _line(found: Sequence[Part], band: tuple[float, float]) -> Spec:
    most = max(part.samples_per_s or 0.0 for part in found) * 1.1
    y = {
        "field": "samples", "type": "quantitative", "title": "samples/s",
        "scale": {"domain": [0, most], "nice": False},
        "axis": {"labelExpr": COUNTS, "tickCount": 3},
    }  # fmt: skip
    mark = {"type": "line", "interpolate": "step-after", "stroke": "var(--read)"}
    return _chart(found, band, mark, y)


def _area(found: Sequence[Part], band: tuple[float, float]) -> Spec:
    y = {
        "field": "share", "type": "quantitative", "title": "waited",
        "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 3},
    }  # fmt: skip
    mark = {"type": "area", "interpolate": "step-after", "fill": ACCENT}
    return _chart(found, band, mark, y)


def _chart(found: Sequence[Part], band: tuple[float, float], mark: Spec, y: Spec) -> Spec:
    rows = [
        {"at": part.begin_s, "samples": part.samples_per_s, "share": part.wait_share}
        for part in found
    ]
    # the last part is as long as any: a step needs its end
    rows.append({**rows[-1], "at": found[-1].end_s})
    x = {
        "field": "at", "type": "quantitative", "title": None,
        "scale": {"domain": [0, found[-1].end_s], "nice": False},
        "axis": {"labelExpr": SECONDS, "tickCount": 6, "grid": False},
    }  # fmt: skip
    shade = {
        "data": {"values": [{"at": band[0], "to": band[1]}]},
        "mark": {"type": "rect", "fill": "var(--line)", "fillOpacity": 0.6},
        "encoding": {"x": x, "x2": {"field": "to"}},
    }
    drawn = {"mark": mark, "encoding": {"x": x, "y": y}}
    return chart(rows, layer=[shade, drawn], height=90)
