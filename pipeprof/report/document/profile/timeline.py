"""The batches that a profile keeps: how fast they came, and a stretch of them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from statistics import median

from pipeprof.model import BatchLog, Profile
from pipeprof.report.document.blocks import (
    Block,
    Chart,
    Footnote,
    Row,
    Section,
    Subheading,
    Table,
    columns,
    row,
)
from pipeprof.report.document.charts import OverTime, Part, Stretch, Timeline
from pipeprof.units import counted, format_count, format_duration, format_share

_LEAST, _MOST = 60, 360
"""Batches of a stretch."""
_PARTS = 100
"""At most, over time."""
_PART = 4
"""Batches of a part, at least."""


def timeline(profile: Profile) -> Section:
    title = "Timeline of batches"
    log = profile.batches
    stretch = typical(log, min(max(_LEAST, 5 * profile.config.num_workers), _MOST))
    if stretch is None:
        unknown = Footnote("Unknown: no batches were kept.")
        return Section("timeline", title, (unknown,), evidence=True)
    count, kept = stretch.last - stretch.first, len(log.asked_s)
    text = (
        f"{counted(count, 'consecutive batch')}, a lane for main and one for each worker; main "
        f"waited {format_share(stretch.wait_share)} of their time. In the accent colour: in main, "
        "the wait; in a worker, what it was doing with the batch that main awaited."
    )
    config = profile.config
    data = Timeline(log, stretch, config.num_workers * (config.prefetch_factor or 1))
    blocks: tuple[Block, ...] = (
        *over_time(log, stretch),
        Chart("timeline", title, text, data),
        Subheading("The longest waits of these batches"),
        _waits(log, stretch),
    )
    note = f"all {kept:,} that were kept"
    if count < kept:
        note = f"{count:,} of {kept:,} that were kept, waiting as much as all of them"
    return Section("timeline", title, blocks, note, evidence=True)


def typical(log: BatchLog, batches: int) -> Stretch | None:
    """The stretch of ``batches`` whose share of waiting is nearest to that of all that is kept;
    ``None`` where there is none that took any time."""
    known = min(len(log.asked_s), len(log.delivered_s), len(log.done_s))
    batches = min(batches, known)
    if not batches:
        return None
    waits = [max(d - a, 0.0) for a, d in zip(log.asked_s, log.delivered_s, strict=False)]
    steps = [
        max(log.done_s[place] - log.asked_s[place] - paused_s(log, place), 0.0)
        for place in range(known)
    ]
    whole = _share(sum(waits), sum(steps))
    found = [
        Stretch(at, at + batches, _share(sum(waits[at : at + batches]),
                                         sum(steps[at : at + batches])))
        for at in range(0, known - batches + 1, max(batches // 4, 1))
    ]  # fmt: skip
    found = [each for each in found if log.done_s[each.last - 1] > log.asked_s[each.first]]
    if log.index:  # rather one in which all batches were observed
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
    return at(log.pause_s, place) or 0.0


def at(column: Sequence[float | None], place: int) -> float | None:
    """``None`` where the log does not hold it."""
    return column[place] if place < len(column) else None


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _waits(log: BatchLog, stretch: Stretch, most: int = 8) -> Table:
    """The longest first."""
    places = sorted(
        range(stretch.first, stretch.last),
        key=lambda place: log.asked_s[place] - log.delivered_s[place],
    )
    return Table(
        columns(("batch", "worker", "main waited", "fetched in")),
        tuple(_wait(log, place) for place in places[:most]),
    )


def _wait(log: BatchLog, place: int) -> Row:
    begin, end = at(log.fetch_start_s, place), at(log.fetch_end_s, place)
    worker = log.worker[place] if log.worker else -2
    return row(
        f"{log.index[place] if log.index else place:,}",
        f"#{worker}" if worker >= 0 else "main" if worker == -1 else "unknown",
        format_duration(max(log.delivered_s[place] - log.asked_s[place], 0.0)),
        format_duration(end - begin) if begin is not None and end is not None else "unknown",
    )


def parts(log: BatchLog) -> list[Part]:
    """Of as many batches each, but for the last, which has what is left too."""
    known = min(len(log.asked_s), len(log.delivered_s), len(log.done_s))
    each = max(_PART, -(-known // _PARTS))
    zero_s = log.asked_s[0] if known else 0.0
    found = []
    for first in range(0, known - each + 1, each):
        last = first + each if first + 2 * each <= known else known
        begin, end = log.asked_s[first], log.done_s[last - 1]
        waits = zip(log.asked_s[first:last], log.delivered_s[first:last], strict=True)
        steps = [
            (log.asked_s[place] + paused_s(log, place), log.done_s[place])
            for place in range(first, last)
        ]
        samples = sum(log.samples[first:last]) if len(log.samples) >= last else None
        whole = sum(max(done - asked, 0.0) for asked, done in steps)
        if end > begin and whole > 0:
            found.append(Part(
                begin - zero_s, end - zero_s, samples / whole if samples else None,
                sum(max(delivered - asked, 0.0) for asked, delivered in waits) / whole,
            ))  # fmt: skip
    return found


def over_time(log: BatchLog, stretch: Stretch) -> list[Chart]:
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
    waiting = Chart("waiting", "Waiting over time", text, OverTime("waited", found, shaded))
    rates = [part.samples_per_s for part in found if part.samples_per_s is not None]
    if not rates:
        return [waiting]
    text = (
        f"{format_count(median(rates))} samples/s in the median part, {format_count(min(rates))} "
        f"to {format_count(max(rates))} in all; {counted(len(found), 'part')} in "
        f"{format_duration(found[-1].end_s)}."
    )
    data = OverTime("samples/s", found, shaded)
    return [Chart("pace", "Samples/s over time", text, data), waiting]
