"""What each part allows, and what changes would bring."""

from __future__ import annotations

from typing import Final

from pipeprof.model import Profile, Recommendation, Verdict
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.charts import Bar, Bars, Standing, ThroughputPoint, Throughputs
from pipeprof.report.document.wording import (
    count_range,
    emulated,
    or_unknown,
    settings,
    times,
)
from pipeprof.units import format_count

_KEEPS_UP: Final[dict[Verdict, str]] = {
    "fed": "nothing holds the accelerator up",
    "starved": "each part alone would keep up, and yet the accelerator waits",
    "inconclusive": "each part alone would keep up",
}
"""Where the accelerator's own ceiling is the lowest: what follows from it."""


def ceilings(profile: Profile) -> doc.Section:
    """The pipeline roofline."""
    name, title = "ceilings", "Throughput ceilings"
    if not profile.ceilings:
        unknown = "Unknown: too little was seen of this run to say what each part allows."
        return doc.section(name, title, unknown)
    rates = {name: ceiling.samples_per_s for name, ceiling in profile.ceilings.items()}
    ordered = dict(sorted(rates.items(), key=lambda item: item[1]))
    demand = rates.get("accelerator") or None
    description = _lowest(profile, ordered, demand)
    chart = doc.Chart("roofline", "Pipeline roofline", description, _bars(ordered, demand))
    return doc.section(name, title, chart, _table(profile, ordered, demand), note=_demand(profile))


def _bars(ordered: dict[str, float], demand: float | None) -> Bars:
    """A lowest ceiling that is the accelerator's own holds nothing up."""
    found: list[Bar] = []
    for name, value in ordered.items():
        standing: Standing = "demand" if name == "accelerator" else "" if found else "worst"
        text = f"{name}: {format_count(value)} samples/s"
        text += f", {times(value / demand)} of what the accelerator asks" if demand else ""
        found.append(Bar(name, value, format_count(value), text, standing))
    return Bars("samples/s", "samples/s", tuple(found), demand)


def _demand(profile: Profile) -> str:
    if not profile.diagnosis.has_step:
        return "samples/s; the loop has no training step"
    if "accelerator" not in profile.ceilings:
        return "samples/s; the accelerator's demand is unknown"
    return f"samples/s; 1.00× is what the accelerator{emulated(profile.environment)} asks"


def _lowest(profile: Profile, ordered: dict[str, float], demand: float | None) -> str:
    name, least = next(iter(ordered.items()))
    text = f"The lowest is {name}, {format_count(least)} samples/s"
    if not demand:
        return f"{text}; what the accelerator asks is unknown."
    if name == "accelerator":
        return f"{text}: {_KEEPS_UP[profile.diagnosis.verdict]}."
    return f"{text}, {times(least / demand)} of what the accelerator asks."


def _table(profile: Profile, ordered: dict[str, float], demand: float | None) -> doc.Table:
    full = demand or max(ordered.values())
    starved = profile.diagnosis.verdict == "starved"
    lowest = next(iter(ordered)) if starved else "accelerator"
    rows = []
    for name, value in ordered.items():
        share = value / full if full > 0 else 0.0
        asked = doc.Cell(times(value / demand) if demand else "unknown", share=share)
        formula = f"{profile.ceilings[name].formula} ({profile.ceilings[name].source})"
        tone: doc.Tone = "bad" if name == lowest != "accelerator" else ""
        rows.append(doc.row(doc.term(name), format_count(value), asked, formula, tone=tone))
    titles = (doc.Column("part", "name"), *doc.columns(("samples/s", "of the demand")))
    return doc.Table((*titles, doc.Column("how it comes about", "text")), tuple(rows))


def throughput(profile: Profile) -> doc.Section:
    """As measured, and with each change."""
    name, title = "throughput", "Throughput, measured and predicted"
    rates = profile.throughput
    if rates.samples_per_s <= 0:
        unknown = "Unknown: nothing was measured after warm-up."
        return doc.section(name, title, unknown, evidence=True)
    now = ThroughputPoint(settings(profile.config), "measured", rates.samples_per_s, rates.interval)
    points = [now, *(point for advice in profile.recommendations for point in _points(advice))]
    table = _settings(points, rates.samples_per_s)
    if len(points) == 1:
        alone = doc.Paragraph("No other setting was predicted or tried; pipeprof sweep tries them.")
        return doc.section(name, title, table, alone, evidence=True)
    demand = profile.ceilings.get("accelerator")
    data = Throughputs(tuple(points), demand.samples_per_s if demand else None)
    chart = doc.Chart("throughput", title, _in_words(points), data)
    note = "95 % of what was measured, 90 % of what is predicted"
    return doc.section(name, title, chart, table, note=note, evidence=True)


def _points(advice: Recommendation) -> list[ThroughputPoint]:
    """What is predicted, what was tried of it, what is left open."""
    setting = f"{advice.setting}: {advice.proposed}"
    predicted, verified = advice.predicted_samples_per_s, advice.verified_samples_per_s
    points = []
    if predicted is not None:
        points.append(ThroughputPoint(setting, "predicted", predicted, advice.interval))
    if verified is not None:
        interval = advice.interval if predicted is None else None
        points.append(ThroughputPoint(setting, "measured", verified, interval))
    if not points and advice.interval:
        points.append(ThroughputPoint(setting, "open", None, advice.interval))
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
        (doc.Column("setting", "text"), doc.Column("known by", "name"), *titles), tuple(rows)
    )


def _in_words(points: list[ThroughputPoint]) -> str:
    now, *others = points
    parts = [f"Measured: {format_count(now.samples_per_s or 0.0)} samples/s."]
    for point in others:
        if point.samples_per_s is not None:
            value = format_count(point.samples_per_s)
            parts.append(f"{point.setting}, {point.known_by}: {value}.")
        elif point.interval:
            range_ = count_range(point.interval)
            parts.append(f"{point.setting}: {range_}, no more can be said from this run.")
    return " ".join(parts)
