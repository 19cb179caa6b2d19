"""What to change, and what else was found."""

from __future__ import annotations

from pipeprof.model import Profile, Recommendation
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.wording import expected, gain


def recommendations(profile: Profile) -> doc.Section:
    blocks: list[doc.Block] = []
    for advice in profile.recommendations:
        brings = ("gain", gain(advice, profile.throughput.samples_per_s))
        blocks += _change(advice, brings, *expected(advice), ("why", advice.why))
    otherwise = "" if blocks else "No change of settings is recommended from this run."
    return doc.section("recommendation", "Recommendation", *blocks, otherwise)


def first_recommendation(profile: Profile) -> doc.Section:
    """The first alone, in brief."""
    if not profile.recommendations:
        return doc.section("recommendation", "Recommendation")
    advice, *others = profile.recommendations
    brings = ("gain", gain(advice, profile.throughput.samples_per_s))
    blocks = _change(advice, brings, ("why", advice.why))
    note = f"the first of {len(others) + 1}" if others else ""
    return doc.section("recommendation", "Recommendation", *blocks, note=note)


def _change(advice: Recommendation, *said: tuple[str, str]) -> list[doc.Block]:
    change = doc.Subheading(f"{advice.setting}: {advice.current} → {advice.proposed}")
    return [change, doc.figures(said), *([doc.Code(advice.code)] if advice.code else [])]


def findings(profile: Profile) -> doc.Section:
    blocks: list[doc.Block] = []
    for finding in profile.findings:
        blocks.append(doc.Subheading(f"{finding.title} ({finding.code})"))
        blocks.append(doc.figures([("seen", finding.evidence), ("fix", finding.fix)]))
    otherwise = "" if blocks else "No known pathology showed in this run."
    return doc.section("findings", "Findings", *blocks, otherwise)
