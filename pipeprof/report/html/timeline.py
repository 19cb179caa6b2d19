"""A stretch of real batches: which worker made what when, and for what main waited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

from pipeprof.model import BatchLog, Profile
from pipeprof.report.html.vega import ACCENT, SECONDS, Datum, Spec, chart
from pipeprof.units import format_duration

_LEAST, _MOST = 60, 360
"""Batches of a stretch."""
_COLOURS: Final = {
    "make": "var(--decode)",
    "on its way": "var(--transfer)",
    "ready": "var(--ready)",
    "step": "var(--step)",
    "pause": "var(--bar)",
    "awaited": ACCENT,
}
"""Kind of span → colour, in the order of the legend. *Awaited*: in main the wait, in a worker what
the awaited batch was doing meanwhile."""
_UPPER, _MIDDLE, _LOWER, _WHOLE = (0.12, 0.6), (0.62, 0.74), (0.76, 0.88), (0.12, 0.88)
"""Places within a lane, from its top: made, on its way, ready; in main's."""


@dataclass(frozen=True)
class Stretch:
    """Consecutive batches of a log."""

    first: int
    """Place in the log."""
    last: int
    """Behind its end."""
    wait_share: float
    """0..1 of the stretch's time that main waited."""


def typical(log: BatchLog, batches: int) -> Stretch | None:
    """The stretch of ``batches`` whose share of waiting is nearest to that of all that is kept;
    ``None`` where there is none that took any time."""
    known = min(len(log.asked_s), len(log.delivered_s), len(log.done_s))
    batches = min(batches, known)
    if not batches:
        return None
    waits = [max(d - a, 0.0) for a, d in zip(log.asked_s, log.delivered_s, strict=False)]
    turns = [
        max(log.done_s[place] - log.asked_s[place] - paused_s(log, place), 0.0)
        for place in range(known)
    ]
    whole = _share(sum(waits), sum(turns))
    step = max(batches // 4, 1)
    found = [
        Stretch(at, at + batches, _share(sum(waits[at : at + batches]),
                                         sum(turns[at : at + batches])))
        for at in range(0, known - batches + 1, step)
    ]  # fmt: skip
    found = [each for each in found if log.done_s[each.last - 1] > log.asked_s[each.first]]
    if log.index:  # rather one in which all batches were watched
        in_a_row = [e for e in found if log.index[e.last - 1] - log.index[e.first] == batches - 1]
        found = in_a_row or found
    # a pause would leave no room for the rest
    found = [e for e in found if not any(log.pause_s[e.first : e.last])] or found
    return min(found, key=lambda each: abs(each.wait_share - whole), default=None)


def sound(log: BatchLog) -> BatchLog:
    """``log`` without columns that are not as long as they must be: a file may say anything."""
    lengths = {field.name: len(getattr(log, field.name)) for field in fields(log)}
    odd = [name for name, length in lengths.items() if length not in (0, lengths["index"])]
    return replace(log, **dict.fromkeys(odd, ())) if odd else log


def paused_s(log: BatchLog, place: int) -> float:
    """Of the step on that batch."""
    return _at(log.pause_s, place) or 0.0


def size(profile: Profile) -> int:
    """Batches to show: a few of each worker."""
    return min(max(_LEAST, 5 * profile.config.num_workers), _MOST)


def _ahead(profile: Profile) -> int:
    """Batches that may be in the making, or lie ready, when one is delivered."""
    config = profile.config
    return config.num_workers * (config.prefetch_factor or 1)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def lanes(log: BatchLog, stretch: Stretch) -> list[int]:
    """Main's (-1) and those of the workers that have a batch in it, in order."""
    seen = set(log.worker[stretch.first : stretch.last])
    return [-1, *sorted(worker for worker in seen if worker >= 0)]


def timeline(profile: Profile, stretch: Stretch) -> Spec:
    """Lanes over time; zoomed by its parameters ``from`` and ``to``."""
    log = profile.batches
    zero_s, last_s = log.asked_s[stretch.first], log.done_s[stretch.last - 1]
    placed = {worker: place for place, worker in enumerate(lanes(log, stretch))}
    data: list[Datum] = []
    for place in range(stretch.first, min(stretch.last + _ahead(profile), len(log.done_s))):
        for span in _spans(log, place):
            begin, end = max(span.begin_s, zero_s), min(span.end_s, last_s)
            if span.lane in placed and begin < end:
                top, bottom = span.place
                data.append({
                    "kind": span.kind, "x": round(begin - zero_s, 6), "x2": round(end - zero_s, 6),
                    "y": round(placed[span.lane] + top, 2),
                    "y2": round(placed[span.lane] + bottom, 2), "tip": span.words,
                })  # fmt: skip
    shown = [kind for kind in _COLOURS if any(datum["kind"] == kind for datum in data)]
    titles = ["main", *(f"worker {lane}" for lane in placed if lane >= 0)]
    height = max(16, min(34, 900 // len(placed)))
    rectangles = {
        "mark": {"type": "rect", "clip": True},
        "encoding": {
            "x": {
                "field": "x", "type": "quantitative", "title": "time since the first of them",
                "scale": {"domainMin": {"expr": "from"}, "domainMax": {"expr": "to"},
                          "nice": False, "zero": False},
                "axis": {"labelExpr": SECONDS, "tickCount": 6, "grid": False},
            },
            "x2": {"field": "x2"},
            "y": {
                "field": "y", "type": "quantitative", "title": None,
                "scale": {"domain": [0, len(placed)], "reverse": True, "nice": False},
                "axis": {
                    "values": [place + 0.5 for place in placed.values()], "grid": False,
                    "ticks": False, "domain": False, "labelOverlap": True,
                    "labelExpr": f"{titles!r}[floor(datum.value)]",
                },
            },
            "y2": {"field": "y2"},
            "color": {
                "field": "kind", "type": "nominal", "legend": {},
                "scale": {"domain": shown, "range": [_COLOURS[kind] for kind in shown]},
            },
            "tooltip": {"field": "tip"},
        },
    }  # fmt: skip
    params = [{"name": "from", "value": 0}, {"name": "to", "value": last_s - zero_s},
              {"name": "whole", "value": last_s - zero_s}]  # fmt: skip
    return chart(data, params=params, layer=[rectangles], height=height * len(placed))


@dataclass(frozen=True)
class _Span:
    lane: int
    kind: str
    begin_s: float
    end_s: float
    words: str
    place: tuple[float, float] = _WHOLE


def _spans(log: BatchLog, place: int) -> Iterator[_Span]:
    """Of one batch: in main, and in the worker that made it."""
    asked, delivered, done = (c[place] for c in (log.asked_s, log.delivered_s, log.done_s))
    worker = log.worker[place] if log.worker else -2
    name = f"batch {log.index[place] if log.index else place:,}"
    made_by = f" for worker {worker}" if worker >= 0 else ""
    wait = f"{name}: main waited {format_duration(max(delivered - asked, 0))}{made_by}"
    yield _Span(-1, "awaited", asked, delivered, wait)
    paused = done - paused_s(log, place)  # where in the step it lay is not kept
    step = f"{name}: step {format_duration(paused - delivered)}"
    yield _Span(-1, "step", delivered, paused, step)
    yield _Span(-1, "pause", paused, done, f"{name}: pause {format_duration(done - paused)}")
    begin, made = _at(log.fetch_start_s, place), _at(log.fetch_end_s, place)
    if worker < 0 or begin is None or made is None:
        return
    told = f"{name}: made in {format_duration(made - begin)} by worker {worker}{_parts(log, place)}"
    awaited = min(max(asked, begin), made)
    yield _Span(worker, "make", begin, awaited, told, _UPPER)
    yield _Span(worker, "awaited", awaited, made, f"{told}; main waited", _UPPER)
    sent, pinned = _at(log.sent_s, place), _at(log.pinned_s, place)
    arrived = pinned or _at(log.arrived_s, place)
    if arrived is None:
        return
    # main receives a batch only when it asks for one; a pin thread always does
    came = arrived if pinned else min(sent or made, arrived)
    way = f"{name}: {format_duration(arrived - made)} from made to received"
    ready = f"{name}: ready for {format_duration(asked - came)}"
    yield _Span(worker, "on its way", made, min(came, max(asked, made)), way, _MIDDLE)
    yield _Span(worker, "ready", came, asked, ready, _LOWER)
    yield _Span(worker, "awaited", max(asked, made), min(arrived, delivered), way, _MIDDLE)


def _parts(log: BatchLog, place: int) -> str:
    """What is known of how it was made."""
    return "".join(
        f", {name} {format_duration(value)}"
        for name in ("read", "decode", "transform", "collate")
        if (value := _at(getattr(log, f"{name}_s"), place)) is not None
    )


@dataclass(frozen=True)
class Wait:
    """Of main, for one batch."""

    batch: int
    worker: int
    """As in `BatchLog`."""
    wait_s: float
    made_s: float | None


def longest_waits(log: BatchLog, stretch: Stretch, most: int = 8) -> list[Wait]:
    """Of the stretch, the longest first."""
    found = []
    for place in range(stretch.first, stretch.last):
        begin, made = _at(log.fetch_start_s, place), _at(log.fetch_end_s, place)
        wait = Wait(
            log.index[place] if log.index else place,
            log.worker[place] if log.worker else -2,
            max(log.delivered_s[place] - log.asked_s[place], 0.0),
            made - begin if begin is not None and made is not None else None,
        )
        found.append(wait)
    return sorted(found, key=lambda wait: -wait.wait_s)[:most]


def _at(column: tuple[float | None, ...], place: int) -> float | None:
    return column[place] if place < len(column) else None
