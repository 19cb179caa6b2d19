"""What to change, and what else was found."""

from __future__ import annotations

from pipeprof.model import Profile, Recommendation
from pipeprof.report.document.blocks import Block, Code, Section, Subheading, figures, section
from pipeprof.report.document.wording import expected, gain


def recommendations(profile: Profile) -> Section:
    blocks: list[Block] = []
    for advice in profile.recommendations:
        brings = ("gain", gain(advice, profile.throughput.samples_per_s))
        blocks += _change(advice, brings, *expected(advice), ("why", advice.why))
    otherwise = "No change of settings is recommended from this run."
    return section("recommendation", "Recommendation", *(blocks or [otherwise]))


def first_recommendation(profile: Profile) -> Section:
    """The first alone, in brief."""
    if not profile.recommendations:
        return section("recommendation", "Recommendation")
    advice, *others = profile.recommendations
    brings = ("gain", gain(advice, profile.throughput.samples_per_s))
    blocks = _change(advice, brings, ("why", advice.why))
    note = f"the first of {len(others) + 1}" if others else ""
    return section("recommendation", "Recommendation", *blocks, note=note)


def _change(advice: Recommendation, *said: tuple[str, str]) -> list[Block]:
    change = Subheading(f"{advice.setting}: {advice.current} → {advice.proposed}")
    return [change, figures(said), *([Code(advice.code)] if advice.code else [])]


def findings(profile: Profile) -> Section:
    blocks: list[Block] = []
    for finding in profile.findings:
        blocks.append(Subheading(f"{finding.title} ({finding.code})"))
        blocks.append(figures([("seen", finding.evidence), ("fix", finding.fix)]))
    otherwise = "No known pathology showed in this run."
    return section("findings", "Findings", *(blocks or [otherwise]))
