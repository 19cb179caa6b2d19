"""Present the throughput ceilings of a run, and its throughput with each recommended change."""

from __future__ import annotations

from typing import Final

from pipeprof.model import Profile, Recommendation, Verdict
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Bar, Bars, Standing, ThroughputPoint, Throughputs
from pipeprof.report.document.profile.pipeline import loader_in_words
from pipeprof.report.document.wording import (
    count_range,
    emulated,
    or_unknown,
    times,
)
from pipeprof.units import format_count

_KEEPS_UP: Final[dict[Verdict, str]] = {
    "fed": "nothing slows the accelerator down",
    "starved": "each part alone would keep up, and yet the accelerator waits",
    "inconclusive": "each part alone would keep up",
}
"""Verdict → the conclusion where the accelerator's own ceiling is the lowest."""


def ceilings(profile: Profile) -> doc.Section:
    """Return the ceilings as a roofline chart and a table, the lowest first."""
    name, title = "ceilings", "Throughput ceilings"
    if not profile.ceilings:
        unknown = "Unknown: too little of this run was measured to compute ceilings."
        return doc.section(name, title, unknown)
    rates = {name: ceiling.samples_per_s for name, ceiling in profile.ceilings.items()}
    ordered = dict(sorted(rates.items(), key=lambda item: item[1]))
    demand = rates.get("accelerator") or None
    description = _lowest(profile, ordered, demand)
    chart = doc.Chart("roofline", "Pipeline roofline", description, _bars(ordered, demand))
    return doc.section(name, title, chart, _table(profile, ordered, demand), note=_demand(profile))


def _bars(ordered: dict[str, float], demand: float | None) -> Bars:
    """Return a bar per ceiling. The lowest stands out unless it is the accelerator's own."""
    bars: list[Bar] = []
    for name, value in ordered.items():
        standing: Standing = "demand" if name == "accelerator" else "" if bars else "worst"
        text = f"{name}: {format_count(value)} samples/s"
        text += f", {times(value / demand)} of the accelerator's demand" if demand else ""
        bars.append(Bar(name, value, format_count(value), text, standing))
    return Bars("samples/s", "samples/s", tuple(bars), demand)


def _demand(profile: Profile) -> str:
    if not profile.diagnosis.has_step:
        return "samples/s; the loop has no training step"
    if "accelerator" not in profile.ceilings:
        return "samples/s; the accelerator's demand is unknown"
    return f"samples/s; 1.00× is the demand of the accelerator{emulated(profile.environment)}"


def _lowest(profile: Profile, ordered: dict[str, float], demand: float | None) -> str:
    name, least = next(iter(ordered.items()))
    text = f"The lowest is {name}, {format_count(least)} samples/s"
    if not demand:
        return f"{text}; the accelerator's demand is unknown."
    if name == "accelerator":
        return f"{text}: {_KEEPS_UP[profile.diagnosis.verdict]}."
    return f"{text}, {times(least / demand)} of the accelerator's demand."


def _table(profile: Profile, ordered: dict[str, float], demand: float | None) -> doc.Table:
    full = demand or max(ordered.values())
    starved = profile.diagnosis.verdict == "starved"
    lowest = next(iter(ordered)) if starved else "accelerator"
    rows = []
    for name, value in ordered.items():
        share = value / full if full > 0 else 0.0
        relative = doc.Cell(times(value / demand) if demand else "unknown", share=share)
        formula = f"{profile.ceilings[name].formula} ({profile.ceilings[name].source})"
        tone: doc.Tone = "bad" if name == lowest != "accelerator" else ""
        rows.append(doc.row(doc.term(name), format_count(value), relative, formula, tone=tone))
    titles = (doc.Column("part", "name"), *doc.columns(("samples/s", "of the demand")))
    return doc.Table((*titles, doc.Column("calculation", "text")), tuple(rows))


def throughput(profile: Profile) -> doc.Section:
    """Return the measured throughput and the throughput with each recommended change."""
    name, title = "throughput", "Throughput, measured and predicted"
    rates = profile.throughput
    if rates.samples_per_s <= 0:
        unknown = "Unknown: nothing was measured after warm-up."
        return doc.section(name, title, unknown, evidence=True)
    now = ThroughputPoint(loader_in_words(profile), "measured", rates.samples_per_s, rates.interval)
    points = [now, *(point for advice in profile.recommendations for point in _points(advice))]
    table = _settings(points, rates.samples_per_s)
    if len(points) == 1:
        alone = doc.Paragraph("No other setting was predicted or tried; pipeprof sweep tries them.")
        return doc.section(name, title, table, alone, evidence=True)
    demand = profile.ceilings.get("accelerator")
    data = Throughputs(tuple(points), demand.samples_per_s if demand else None)
    chart = doc.Chart("throughput", title, _in_words(points), data)
    note = "intervals: 95 % where measured, 90 % where predicted"
    return doc.section(name, title, chart, table, note=note, evidence=True)


def _points(advice: Recommendation) -> list[ThroughputPoint]:
    """Return the prediction and the measurement of a change, or its range if that is all."""
    setting = f"{advice.setting}: {advice.proposed}"
    predicted, verified = advice.predicted_samples_per_s, advice.verified_samples_per_s
    points = []
    if predicted is not None:
        points.append(ThroughputPoint(setting, "predicted", predicted, advice.interval))
    if verified is not None:
        interval = advice.interval if predicted is None else None
        points.append(ThroughputPoint(setting, "measured", verified, interval))
    if not points and advice.interval:
        points.append(ThroughputPoint(setting, "range", None, advice.interval))
    return points


def _settings(points: list[ThroughputPoint], now_per_s: float) -> doc.Table:
    rows = (
        doc.row(
            point.setting,
            point.known_by,
            or_unknown(point.samples_per_s, format_count),
            or_unknown(point.interval, count_range),
            or_unknown(point.samples_per_s, lambda value: times(value / now_per_s)),
        )
        for point in points
    )
    titles = doc.columns(("samples/s", "interval", "speed"))
    return doc.Table(
        (doc.Column("setting", "text"), doc.Column("basis", "name"), *titles), tuple(rows)
    )


def _in_words(points: list[ThroughputPoint]) -> str:
    now, *others = points
    parts = [f"Measured: {format_count(now.samples_per_s or 0.0)} samples/s."]
    for point in others:
        if point.samples_per_s is not None:
            value = format_count(point.samples_per_s)
            parts.append(f"{point.setting}, {point.known_by}: {value}.")
        elif point.interval:
            low_to_high = count_range(point.interval)
            parts.append(f"{point.setting}: {low_to_high}; this run gives no exact figure.")
    return " ".join(parts)
