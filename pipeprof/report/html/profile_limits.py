"""What each part allows, and what changes would bring."""

from __future__ import annotations

from typing import Final

from pipeprof.model import Profile, Recommendation, Verdict
from pipeprof.report.html import charts
from pipeprof.report.html.shapes import (
    Cell,
    Chart,
    Column,
    Folded,
    Lines,
    Section,
    Table,
    row,
)
from pipeprof.report.html.words import word
from pipeprof.report.phrases import count_range, is_emulated, settings, times
from pipeprof.units import format_count

_KEEPS_UP: Final[dict[Verdict, str]] = {
    "fed": "nothing holds the accelerator up",
    "starved": "each part alone would keep up, and yet the accelerator waits",
    "inconclusive": "each part alone would keep up",
}
"""Where the accelerator's own ceiling is the lowest: what follows from it."""
_INTERVALS = "lines: 95 % of what was measured, 90 % of what is predicted"


def limits(profile: Profile) -> Section:
    """The pipeline roofline."""
    if not profile.ceilings:
        unknown = Lines(("Unknown: too little was seen of this run to say what each part allows.",))
        return Section("limits", "The most each part allows", "", (unknown,))
    ordered = sorted(profile.ceilings.items(), key=lambda item: item[1].samples_per_s)
    demand = profile.ceilings.get("accelerator")
    asked = demand.samples_per_s if demand is not None else None
    lowest, least = ordered[0][0], ordered[0][1].samples_per_s
    told = f"The lowest is {lowest}, {format_count(least)} samples/s"
    if asked:
        told += (
            f": {_KEEPS_UP[profile.diagnosis.verdict]}."
            if lowest == "accelerator"
            else f", {times(least / asked)} of what the accelerator asks."
        )
    else:
        told += "; what the accelerator asks is unknown."
    spec = charts.roofline({name: c.samples_per_s for name, c in ordered}, asked)
    emulated = " (emulated)" if is_emulated(profile.environment.accelerator) else ""
    note = f"samples/s; dashed: what the accelerator{emulated} asks" if asked else "samples/s"
    table = Table(
        "The most each part allows",
        (Column("part", right=False), Column("samples/s"), Column("of the demand"),
         Column("how it comes about", right=False, prose=True),
         Column("known by", right=False)),
        tuple(
            row(
                Cell(name, word=word(name)),
                format_count(ceiling.samples_per_s),
                times(ceiling.samples_per_s / asked) if asked else "unknown",
                ceiling.formula,
                ceiling.source,
                tone="worst" if name == lowest and lowest != "accelerator" else "",
            )
            for name, ceiling in ordered
        ),
    )  # fmt: skip
    picture = Chart("roofline", "Pipeline roofline", told, spec)
    return Section("limits", "The most each part allows", note, (picture, table))


def throughput(profile: Profile) -> Section:
    """As measured, and with each change."""
    title = "Throughput, measured and predicted"
    rates = profile.throughput
    now = settings(profile.config)
    points: list[charts.Point] = [("measured", now, rates.samples_per_s, rates.interval)]
    for advice in profile.recommendations:
        points += _of(advice)
    if rates.samples_per_s <= 0:
        nothing = Lines(("Unknown: nothing was measured after warm-up.",))
        return Section("throughput", title, "", (nothing,))
    table = Table(
        title,
        (Column("setting", right=False, prose=True), Column("known by", right=False),
         Column("samples/s"), Column("interval"), Column("speed")),
        tuple(
            row(
                setting, known_by,
                format_count(value) if value is not None else "unknown",
                count_range(interval) if interval else "unknown",
                times(value / rates.samples_per_s) if value is not None else "unknown",
            )
            for known_by, setting, value, interval in points
        ),
    )  # fmt: skip
    if len(points) == 1:
        alone = Lines(("No other setting was predicted or tried; pipeprof sweep tries them.",))
        return Section("throughput", title, "", (table, alone))
    demand = profile.ceilings.get("accelerator")
    spec = charts.throughput(points, demand.samples_per_s if demand else None)
    told = f"Measured: {format_count(rates.samples_per_s)} samples/s."
    for known_by, setting, value, interval in points[1:]:
        if value is not None:
            told += f" {setting}, {known_by}: {format_count(value)}."
        elif interval:
            told += f" {setting}: {count_range(interval)}, no more can be said from this run."
    picture = Chart("throughput", title, told, spec)
    return Section("throughput", title, _INTERVALS, (picture, Folded("As a table", table)))


def _of(advice: Recommendation) -> list[charts.Point]:
    """What is predicted, what was tried of it, what is left open."""
    setting = f"{advice.setting}: {advice.proposed}"
    predicted, verified = advice.predicted_samples_per_s, advice.verified_samples_per_s
    points: list[charts.Point] = []
    if predicted is not None:
        points.append(("predicted", setting, predicted, advice.interval))
    if verified is not None:
        interval = advice.interval if predicted is None else None
        points.append(("measured", setting, verified, interval))
    if not points and advice.interval:
        points.append(("open", setting, None, advice.interval))
    return points
