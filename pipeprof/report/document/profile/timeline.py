"""Present the recorded batches: their rate over time, and a stretch of them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from statistics import median
from typing import TypeAlias

from pipeprof.model import BatchLog, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import OverTime, Part, Stretch, Timeline
from pipeprof.units import counted, format_count, format_duration, format_share

_LEAST_BATCHES, _MOST_BATCHES = 60, 360
"""Limits on the batches of a stretch."""
_MOST_PARTS = 100
"""Most parts into which the charts over time divide the run."""
_LEAST_IN_PART = 4
"""Fewest batches of a part."""


def timeline(profile: Profile) -> doc.Section:
    """Return the charts over time, a typical stretch of batches, and its longest waits."""
    name, title = "timeline", "Timeline of batches"
    log = profile.batches
    workers = profile.config.num_workers
    stretch = typical(log, min(max(_LEAST_BATCHES, 5 * workers), _MOST_BATCHES))
    if stretch is None:
        return doc.section(name, title, "Unknown: no batches were recorded.", evidence=True)
    count, kept = stretch.last - stretch.first, len(log.asked_s)
    text = (
        f"{counted(count, 'consecutive batch')} in one lane for main and one for each worker. Main "
        f"waited {format_share(stretch.wait_share)} of the time. The accent colour marks the wait "
        "in main, and in a worker its work on the batch that main awaited."
    )
    data = Timeline(log, stretch, workers * (profile.config.prefetch_factor or 1))
    note = f"all {counted(kept, 'recorded batch')}"
    if count < kept:
        note = f"{count:,} of {kept:,} recorded batches, with the typical share of waiting"
    return doc.section(
        name,
        title,
        *over_time(log, stretch),
        doc.Chart("timeline", title, text, data),
        doc.Subheading("Longest waits for these batches"),
        _waits(log, stretch),
        note=note,
        evidence=True,
    )


_Cycle: TypeAlias = "tuple[float, float]"
"""Seconds that main waited for a batch, and seconds from its request to the end of its step
without pauses."""


def _cycles(log: BatchLog) -> list[_Cycle]:
    """Return the cycle of each batch of which all three moments are known."""
    moments = zip(log.asked_s, log.delivered_s, log.done_s, strict=False)
    return [
        (max(delivered - asked, 0.0), max(done - (asked + paused_s(log, place)), 0.0))
        for place, (asked, delivered, done) in enumerate(moments)
    ]


def _wait_share(cycles: Sequence[_Cycle]) -> float:
    """Return the share of the time, 0..1, that main waited."""
    whole_s = sum(took_s for _, took_s in cycles)
    return sum(waited_s for waited_s, _ in cycles) / whole_s if whole_s > 0 else 0.0


def typical(log: BatchLog, batches: int) -> Stretch | None:
    """Return the stretch whose share of waiting is nearest to that of all recorded batches.

    It has ``batches`` batches, or all if there are fewer. ``None`` where no stretch took any time.
    """
    cycles = _cycles(log)
    batches = min(batches, len(cycles))
    if not batches:
        return None
    candidates = [
        Stretch(first, first + batches, _wait_share(cycles[first : first + batches]))
        for first in range(0, len(cycles) - batches + 1, max(batches // 4, 1))
    ]
    candidates = [e for e in candidates if log.done_s[e.last - 1] > log.asked_s[e.first]]
    if log.index:  # prefer a stretch in which every batch was recorded
        gapless = [
            e for e in candidates if log.index[e.last - 1] - log.index[e.first] == batches - 1
        ]
        candidates = gapless or candidates
    # a pause is so long that it would leave no room for the batches
    candidates = [e for e in candidates if not any(log.pause_s[e.first : e.last])] or candidates
    overall = _wait_share(cycles)
    return min(candidates, key=lambda each: abs(each.wait_share - overall), default=None)


def without_damaged_columns(log: BatchLog) -> BatchLog:
    """Return ``log`` without columns of a wrong length, which a damaged file may have."""
    lengths = {field.name: len(getattr(log, field.name)) for field in fields(log)}
    damaged = [name for name, length in lengths.items() if length not in (0, lengths["index"])]
    return replace(log, **dict.fromkeys(damaged, ())) if damaged else log


def paused_s(log: BatchLog, place: int) -> float:
    """Return the seconds of pause after the batch in that row; 0 if unknown."""
    return at(log.pause_s, place) or 0.0


def at(column: Sequence[float | None], place: int) -> float | None:
    """Return the value in that row; ``None`` where the column is not recorded."""
    return column[place] if place < len(column) else None


def _waits(log: BatchLog, stretch: Stretch, most: int = 8) -> doc.Table:
    """Return the batches of the stretch for which main waited longest, the longest first."""
    places = sorted(
        range(stretch.first, stretch.last),
        key=lambda place: log.asked_s[place] - log.delivered_s[place],
    )
    return doc.Table(
        doc.columns(("batch", "worker", "wait in main", "fetch time")),
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
    """Divide the log into parts of equally many batches; the last also has the remaining ones."""
    cycles = _cycles(log)
    length = max(_LEAST_IN_PART, -(-len(cycles) // _MOST_PARTS))
    divided = []
    for first in range(0, len(cycles) - length + 1, length):
        last = first + length if first + 2 * length <= len(cycles) else len(cycles)
        begin_s = log.asked_s[first] - log.asked_s[0]
        end_s = log.done_s[last - 1] - log.asked_s[0]
        samples = sum(log.samples[first:last]) if len(log.samples) >= last else None
        took_s = sum(took_s for _, took_s in cycles[first:last])
        if end_s > begin_s and took_s > 0:
            rate = samples / took_s if samples else None
            divided.append(Part(begin_s, end_s, rate, _wait_share(cycles[first:last])))
    return divided


def over_time(log: BatchLog, stretch: Stretch) -> list[doc.Chart]:
    """Return a chart of samples/s and one of waiting; none for a run of a few batches."""
    run_parts = tuple(parts(log))
    if len(run_parts) < 2:
        return []
    zero_s = log.asked_s[0]
    shaded = (log.asked_s[stretch.first] - zero_s, log.done_s[stretch.last - 1] - zero_s)
    waits = [part.wait_share for part in run_parts]
    text = (
        f"Main waited {format_share(median(waits))} of the time in the median part, and "
        f"{format_share(min(waits))} to {format_share(max(waits))} in all. Shaded: the stretch "
        "below."
    )
    waiting = doc.Chart("waiting", "Waiting over time", text, OverTime("waited", run_parts, shaded))
    rates = [part.samples_per_s for part in run_parts if part.samples_per_s is not None]
    if not rates:
        return [waiting]
    text = (
        f"{format_count(median(rates))} samples/s in the median part; the "
        f"{counted(len(run_parts), 'part')} range from {format_count(min(rates))} to "
        f"{format_count(max(rates))}, over {format_duration(run_parts[-1].end_s)}."
    )
    data = OverTime("samples/s", run_parts, shaded)
    return [doc.Chart("pace", "Samples/s over time", text, data), waiting]
