"""The batches that a profile keeps: how fast they came, and a stretch of them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from statistics import median
from typing import TypeAlias

from pipeprof.model import BatchLog, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import OverTime, Part, Stretch, Timeline
from pipeprof.units import counted, format_count, format_duration, format_share

_LEAST, _MOST = 60, 360
"""Batches of a stretch."""
_PARTS = 100
"""At most, over time."""
_PART = 4
"""Batches of a part, at least."""


def timeline(profile: Profile) -> doc.Section:
    name, title = "timeline", "Timeline of batches"
    log = profile.batches
    stretch = typical(log, min(max(_LEAST, 5 * profile.config.num_workers), _MOST))
    if stretch is None:
        return doc.section(name, title, "Unknown: no batches were kept.", evidence=True)
    count, kept = stretch.last - stretch.first, len(log.asked_s)
    text = (
        f"{counted(count, 'consecutive batch')}, a lane for main and one for each worker; main "
        f"waited {format_share(stretch.wait_share)} of their time. In the accent colour: in main, "
        "the wait; in a worker, what it was doing with the batch that main awaited."
    )
    config = profile.config
    data = Timeline(log, stretch, config.num_workers * (config.prefetch_factor or 1))
    note = f"all {kept:,} that were kept"
    if count < kept:
        note = f"{count:,} of {kept:,} that were kept, waiting as much as all of them"
    return doc.section(
        name,
        title,
        *over_time(log, stretch),
        doc.Chart("timeline", title, text, data),
        doc.Subheading("The longest waits of these batches"),
        _waits(log, stretch),
        note=note,
        evidence=True,
    )


_Cycle: TypeAlias = "tuple[float, float]"
"""Around one batch: seconds that main waited for it, and seconds in all but for a pause."""


def _cycles(log: BatchLog) -> list[_Cycle]:
    """Of the batches of which all three moments are known."""
    moments = zip(log.asked_s, log.delivered_s, log.done_s, strict=False)
    return [
        (max(delivered - asked, 0.0), max(done - (asked + paused_s(log, place)), 0.0))
        for place, (asked, delivered, done) in enumerate(moments)
    ]


def _wait_share(cycles: Sequence[_Cycle]) -> float:
    """0..1 of their time."""
    whole_s = sum(took_s for _, took_s in cycles)
    return sum(waited_s for waited_s, _ in cycles) / whole_s if whole_s > 0 else 0.0


def typical(log: BatchLog, batches: int) -> Stretch | None:
    """The stretch of ``batches`` whose share of waiting is nearest to that of all that is kept;
    ``None`` where there is none that took any time."""
    cycles = _cycles(log)
    batches = min(batches, len(cycles))
    if not batches:
        return None
    found = [
        Stretch(first, first + batches, _wait_share(cycles[first : first + batches]))
        for first in range(0, len(cycles) - batches + 1, max(batches // 4, 1))
    ]
    found = [each for each in found if log.done_s[each.last - 1] > log.asked_s[each.first]]
    if log.index:  # rather one in which all batches were observed
        in_a_row = [e for e in found if log.index[e.last - 1] - log.index[e.first] == batches - 1]
        found = in_a_row or found
    # a pause would leave no room for the rest
    found = [e for e in found if not any(log.pause_s[e.first : e.last])] or found
    whole = _wait_share(cycles)
    return min(found, key=lambda each: abs(each.wait_share - whole), default=None)


def sound(log: BatchLog) -> BatchLog:
    """``log`` without columns that are not as long as they must be: a file may say anything."""
    lengths = {field.name: len(getattr(log, field.name)) for field in fields(log)}
    odd = [name for name, length in lengths.items() if length not in (0, lengths["index"])]
    return replace(log, **dict.fromkeys(odd, ())) if odd else log


def paused_s(log: BatchLog, place: int) -> float:
    """Of the step on that batch."""
    return at(log.pause_s, place) or 0.0


def at(column: Sequence[float | None], place: int) -> float | None:
    """``None`` where the log does not hold it."""
    return column[place] if place < len(column) else None


def _waits(log: BatchLog, stretch: Stretch, most: int = 8) -> doc.Table:
    """The longest first."""
    places = sorted(
        range(stretch.first, stretch.last),
        key=lambda place: log.asked_s[place] - log.delivered_s[place],
    )
    return doc.Table(
        doc.columns(("batch", "worker", "main waited", "fetched in")),
        tuple(_wait(log, place) for place in places[:most]),
    )


def _wait(log: BatchLog, place: int) -> doc.Row:
    begin, end = at(log.fetch_start_s, place), at(log.fetch_end_s, place)
    worker = log.worker[place] if log.worker else -2
    return doc.row(
        f"{log.index[place] if log.index else place:,}",
        f"#{worker}" if worker >= 0 else "main" if worker == -1 else "unknown",
        format_duration(max(log.delivered_s[place] - log.asked_s[place], 0.0)),
        format_duration(end - begin) if begin is not None and end is not None else "unknown",
    )


def parts(log: BatchLog) -> list[Part]:
    """Of as many batches each, but for the last, which has what is left too."""
    cycles = _cycles(log)
    each = max(_PART, -(-len(cycles) // _PARTS))
    found = []
    for first in range(0, len(cycles) - each + 1, each):
        last = first + each if first + 2 * each <= len(cycles) else len(cycles)
        begin_s = log.asked_s[first] - log.asked_s[0]
        end_s = log.done_s[last - 1] - log.asked_s[0]
        samples = sum(log.samples[first:last]) if len(log.samples) >= last else None
        took_s = sum(took_s for _, took_s in cycles[first:last])
        if end_s > begin_s and took_s > 0:
            rate = samples / took_s if samples else None
            found.append(Part(begin_s, end_s, rate, _wait_share(cycles[first:last])))
    return found


def over_time(log: BatchLog, stretch: Stretch) -> list[doc.Chart]:
    """What is known of both figures; nothing of a run of a few batches."""
    found = tuple(parts(log))
    if len(found) < 2:
        return []
    zero_s = log.asked_s[0]
    shaded = (log.asked_s[stretch.first] - zero_s, log.done_s[stretch.last - 1] - zero_s)
    waits = [part.wait_share for part in found]
    text = (
        f"In the median part main waited {format_share(median(waits))} of the time, in all "
        f"{format_share(min(waits))} to {format_share(max(waits))}. Shaded: the stretch below."
    )
    waiting = doc.Chart("waiting", "Waiting over time", text, OverTime("waited", found, shaded))
    rates = [part.samples_per_s for part in found if part.samples_per_s is not None]
    if not rates:
        return [waiting]
    text = (
        f"{format_count(median(rates))} samples/s in the median part, {format_count(min(rates))} "
        f"to {format_count(max(rates))} in all; {counted(len(found), 'part')} in "
        f"{format_duration(found[-1].end_s)}."
    )
    data = OverTime("samples/s", found, shaded)
    return [doc.Chart("pace", "Samples/s over time", text, data), waiting]
