"""Present the recommendations and the findings of a run."""

from __future__ import annotations

from pipeprof.model import Profile, Recommendation
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.wording import expected, gain


def recommendations(profile: Profile) -> doc.Section:
    """Return all recommended changes with their effects, reasons and code."""
    blocks: list[doc.Block] = []
    for advice in profile.recommendations:
        gained = ("gain", gain(advice, profile.throughput.samples_per_s))
        blocks += _change(advice, gained, *expected(advice), ("why", advice.why))
    none = "" if blocks else "No change of settings is recommended from this run."
    return doc.section("recommendation", "Recommendation", *blocks, none)


def first_recommendation(profile: Profile) -> doc.Section:
    """Return only the first recommended change, without its other effects."""
    if not profile.recommendations:
        return doc.section("recommendation", "Recommendation")
    advice, *others = profile.recommendations
    gained = ("gain", gain(advice, profile.throughput.samples_per_s))
    blocks = _change(advice, gained, ("why", advice.why))
    note = f"the first of {len(others) + 1}" if others else ""
    return doc.section("recommendation", "Recommendation", *blocks, note=note)


def _change(advice: Recommendation, *rows: tuple[str, str]) -> list[doc.Block]:
    change = doc.Subheading(f"{advice.setting}: {advice.current} → {advice.proposed}")
    return [change, doc.figures(rows), *([doc.Code(advice.code)] if advice.code else [])]


def findings(profile: Profile) -> doc.Section:
    """Return the findings with their evidence and fixes."""
    blocks: list[doc.Block] = []
    for finding in profile.findings:
        blocks.append(doc.Subheading(f"{finding.title} ({finding.code})"))
        blocks.append(doc.figures([("evidence", finding.evidence), ("fix", finding.fix)]))
    none = "" if blocks else "No known problem was found in this run."
    return doc.section("findings", "Findings", *blocks, none)
