"""A run from the verdict down to the evidence, in the order in which one asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeprof.model import DeviceUse, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.profile.advice import findings, first_recommendation, recommendations
from pipeprof.report.document.profile.ceilings import ceilings, throughput
from pipeprof.report.document.profile.confidence import confidence, confidence_in_brief
from pipeprof.report.document.profile.key_figures import blamed, cache, rate, starved
from pipeprof.report.document.profile.requests import requests
from pipeprof.report.document.profile.stages import resources, stages
from pipeprof.report.document.profile.stall import first_causes, pauses, pauses_text, stall
from pipeprof.report.document.profile.timeline import sound, timeline
from pipeprof.report.document.profile.workers import workers
from pipeprof.report.document.wording import data_source, settings, verdict_of
from pipeprof.units import counted, format_bytes, format_share

_REST: Final = "The whole report: pipeprof report FILE --full, or as a page: --html OUT."


def profile_document(profile: Profile) -> doc.Document:
    profile = replace(profile, batches=sound(profile.batches))
    key = doc.KeyFigures((starved(profile), rate(profile), blamed(profile), cache(profile)))
    verdict = verdict_of(profile.diagnosis, profile.diagnosis.headline)
    return _document(
        profile,
        doc.section("verdict", "", verdict, key, _setting(profile)),
        recommendations(profile),
        ceilings(profile),
        stages(profile),
        resources(profile),
        stall(profile),
        pauses(profile),
        timeline(profile),
        throughput(profile),
        workers(profile),
        requests(profile),
        findings(profile),
        confidence(profile),
    )


def profile_first_screen(profile: Profile) -> doc.Document:
    """The verdict, its cause, the change that helps, and where the rest is."""
    verdict = verdict_of(profile.diagnosis, profile.diagnosis.headline)
    brief = doc.FigureList((rate(profile), doc.LabelledFigure("loader", settings(profile.config))))
    return _document(
        profile,
        doc.section("verdict", "", verdict, brief),
        first_causes(profile),
        first_recommendation(profile),
        doc.section("confidence", "Confidence", confidence_in_brief(profile), _REST),
    )


def _document(profile: Profile, *sections: doc.Section) -> doc.Document:
    version = profile.environment.pipeprof
    return doc.Document(profile.name, "profile", sections, profile.created, version).filled()


def _setting(profile: Profile) -> doc.FigureList:
    """What was run, and what else the verdict rests on."""
    diagnosis, source = profile.diagnosis, profile.source
    unknown = "unknown: not opened by pipeprof.open_dataset"
    rows = [
        ("loader", settings(profile.config)),
        ("data", data_source(source) if source is not None else unknown),
        ("queue", _queue(profile)),
        ("device", _device(profile.device)),
        ("pauses", pauses_text(profile)),
        ("storage", diagnosis.evidence),
    ]
    if diagnosis.verdict == "inconclusive" and diagnosis.more_batches is not None:
        more = counted(diagnosis.more_batches, "more batch")
        rows.insert(0, ("to settle it", f"run about {more}"))
    return doc.figures(rows)


def _queue(profile: Profile) -> str:
    depth = profile.queue_depth
    if depth is None:
        return ""
    ready = f"{depth.mean:.1f} of {counted(depth.capacity, 'batch')} lay ready"
    none = format_share(depth.empty_share)
    return f"{ready} when one was asked for; {none} of the times none"


def _device(device: DeviceUse | None) -> str:
    if device is None:
        return ""
    parts = []
    if device.batches:
        idle = device.wait_s / (device.wait_s + device.busy_s or 1.0)
        parts.append(
            f"by its own events it had nothing to do {format_share(idle)} of "
            f"{counted(device.batches, 'batch')}' time"
        )
    if device.utilisation is not None:
        parts.append(f"the driver's trend says {format_share(device.utilisation)} used")
    if device.memory_bytes is not None:
        parts.append(f"at most {format_bytes(device.memory_bytes)} of its memory in use")
    return "; ".join(parts)
