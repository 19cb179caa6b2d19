"""What to change, and what else was found."""

from __future__ import annotations

from pipeprof.model import Profile, Recommendation
from pipeprof.report.document.blocks import Block, Code, Footnote, Section, Subheading, figures
from pipeprof.report.document.wording import expected, gain


def recommendations(profile: Profile) -> Section:
    blocks: list[Block] = []
    for advice in profile.recommendations:
        why = [("why", advice.why)]
        blocks += _change(advice)
        blocks.append(figures([*_gain(profile, advice), *expected(advice), *why]))
        blocks += _code(advice)
    otherwise = Footnote("No change of settings is recommended from this run.")
    return Section("recommendation", "Recommendation", tuple(blocks) or (otherwise,))


def first_recommendation(profile: Profile) -> Section:
    """The first alone, in brief."""
    if not profile.recommendations:
        return Section("recommendation", "Recommendation", ())
    advice, *others = profile.recommendations
    blocks = [*_change(advice), figures([*_gain(profile, advice), ("why", advice.why)])]
    note = f"the first of {len(others) + 1}" if others else ""
    return Section("recommendation", "Recommendation", (*blocks, *_code(advice)), note)


def _change(advice: Recommendation) -> list[Block]:
    return [Subheading(f"{advice.setting}: {advice.current} → {advice.proposed}")]


def _gain(profile: Profile, advice: Recommendation) -> list[tuple[str, str]]:
    brings = gain(advice, profile.throughput.samples_per_s)
    return [("gain", brings)] if brings else []


def _code(advice: Recommendation) -> list[Block]:
    return [Code(advice.code)] if advice.code else []


def findings(profile: Profile) -> Section:
    blocks: list[Block] = []
    for finding in profile.findings:
        blocks.append(Subheading(f"{finding.title} ({finding.code})"))
        blocks.append(figures([("seen", finding.evidence), ("fix", finding.fix)]))
    otherwise = Footnote("No known pathology showed in this run.")
    return Section("findings", "Findings", tuple(blocks) or (otherwise,))
