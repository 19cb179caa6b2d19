"""A run as a page: from the verdict down to the evidence, in the order in which one asks."""

from __future__ import annotations

from dataclasses import replace

from pipeprof.model import STORAGE_PARTS, Profile
from pipeprof.report.html.profile_evidence import (
    cached,
    changes,
    findings,
    how_sure,
    pauses,
    requests_made,
)
from pipeprof.report.html.profile_limits import limits, throughput
from pipeprof.report.html.profile_way import on_their_way, stall, where_time_goes
from pipeprof.report.html.profile_workers import side_by_side
from pipeprof.report.html.shapes import Block, Fact, Lines, Pairs, Said, View
from pipeprof.report.html.timeline import sound
from pipeprof.report.layout import opening_word
from pipeprof.report.phrases import (
    count_range,
    data_source,
    is_emulated,
    pauses_row,
    settings,
    share_range,
)
from pipeprof.report.terminal_making import device_row, queue_row
from pipeprof.units import counted, format_count, format_rate, format_share


def profile_view(profile: Profile) -> View:
    profile = replace(profile, batches=sound(profile.batches))
    diagnosis = profile.diagnosis
    return View(
        title=profile.name,
        what="profile",
        created=profile.created,
        verdicts=(Said(opening_word(diagnosis), diagnosis.headline),),
        facts=_facts(profile),
        opening=_opening(profile),
        sections=(
            changes(profile),
            limits(profile),
            where_time_goes(profile),
            stall(profile),
            pauses(profile),
            on_their_way(profile),
            throughput(profile),
            side_by_side(profile),
            requests_made(profile),
            cached(profile),
            findings(profile),
            how_sure(profile),
        ),
        version=profile.environment.pipeprof,
    )


def _facts(profile: Profile) -> tuple[Fact, ...]:
    cache = Fact("cache", profile.cache.state, profile.cache.evidence)
    if not profile.measured_batches:
        nothing = "no batch was measured after warm-up"
        unknown = (Fact(name, "unknown", nothing) for name in ("starved", "throughput", "to blame"))
        return (*unknown, cache)
    diagnosis, rates = profile.diagnosis, profile.throughput
    emulated = ", emulated accelerator" if is_emulated(profile.environment.accelerator) else ""
    used = f"utilisation {format_share(diagnosis.accelerator_utilisation)}"
    starved = Fact(
        "starved",
        format_share(diagnosis.starved_fraction),
        f"95 %: {share_range(diagnosis.starved_interval)}; {used}{emulated}",
        "worst" if diagnosis.verdict == "starved" else "",
    )
    if not diagnosis.has_step:
        starved = Fact("starved", "no step", "the loader is measured alone")
    read = f"; {format_rate(rates.bytes_per_s)} read" if rates.bytes_per_s else ""
    throughput = Fact(
        "throughput",
        f"{format_count(rates.samples_per_s)}/s",
        f"samples, 95 %: {count_range(rates.interval)}{read}",
    )
    return starved, throughput, _to_blame(profile), cache


def _to_blame(profile: Profile) -> Fact:
    diagnosis = profile.diagnosis
    blamed = diagnosis.bottleneck
    if diagnosis.verdict == "fed":
        return Fact("to blame", "nothing", "the accelerator is fed")
    if blamed is None:
        return Fact("to blame", "unknown", "too little was seen to say")
    stage = "read" if blamed in STORAGE_PARTS else blamed
    charged = profile.blame.get(stage)
    if charged is None or profile.stall_s <= 0:
        return Fact("to blame", blamed, "")
    return Fact("to blame", blamed, f"{format_share(charged / profile.stall_s)} of the stall")


def _opening(profile: Profile) -> tuple[Block, ...]:
    diagnosis = profile.diagnosis
    rows = [("loader", settings(profile.config))]
    source = profile.source
    rows.append(("data", data_source(source) if source is not None else "unknown: not opened by "
                 "pipeprof.open_dataset"))  # fmt: skip
    rows.append(("accelerator", profile.environment.accelerator or "unknown"))
    rows += [row for row in (queue_row(profile), device_row(profile.device)) if row is not None]
    if profile.pauses is not None:
        rows.append(("pauses", pauses_row(profile.pauses)))
    if diagnosis.evidence:
        rows.append(("storage", diagnosis.evidence))
    blocks: list[Block] = [Pairs(tuple(rows))]
    if diagnosis.verdict == "inconclusive" and diagnosis.more_batches is not None:
        more = counted(diagnosis.more_batches, "more batch")
        blocks.insert(0, Lines((f"To settle it, run about {more}.",)))
    return tuple(blocks)
