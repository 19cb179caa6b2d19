"""Assemble the document of a run, from the verdict down to the evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeprof.model import DeviceUse, Profile
from pipeprof.report.document import blocks as doc
from pipeprof.report.document.profile.advice import findings, first_recommendation, recommendations
from pipeprof.report.document.profile.ceilings import ceilings, throughput
from pipeprof.report.document.profile.confidence import confidence, confidence_in_brief
from pipeprof.report.document.profile.key_figures import bottleneck, cache, rate, starved
from pipeprof.report.document.profile.pipeline import loader_in_words, pipeline
from pipeprof.report.document.profile.requests import requests
from pipeprof.report.document.profile.stages import resources, stages
from pipeprof.report.document.profile.stall import first_causes, pauses, pauses_text, stall
from pipeprof.report.document.profile.timeline import timeline, without_damaged_columns
from pipeprof.report.document.profile.workers import workers
from pipeprof.report.document.wording import data_source, verdict_of
from pipeprof.units import counted, format_bytes, format_share

_FULL_REPORT: Final = "Full report: pipeprof report FILE --full; as a web page: --html OUT."


def profile_document(profile: Profile) -> doc.Document:
    """Return the full report of a run."""
    profile = replace(profile, batches=without_damaged_columns(profile.batches))
    key = doc.KeyFigures((starved(profile), rate(profile), bottleneck(profile), cache(profile)))
    verdict = verdict_of(profile.diagnosis, profile.diagnosis.headline)
    return _document(
        profile,
        doc.section("verdict", "", verdict, key, _setting(profile)),
        recommendations(profile),
        ceilings(profile),
        pipeline(profile),
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
    """Return the verdict, its causes, the first recommendation, and how to see the full report."""
    verdict = verdict_of(profile.diagnosis, profile.diagnosis.headline)
    brief = doc.FigureList((rate(profile), doc.LabelledFigure("loader", loader_in_words(profile))))
    return _document(
        profile,
        doc.section("verdict", "", verdict, brief),
        first_causes(profile),
        first_recommendation(profile),
        doc.section("confidence", "Confidence", confidence_in_brief(profile), _FULL_REPORT),
    )


def _document(profile: Profile, *sections: doc.Section) -> doc.Document:
    version = profile.environment.pipeprof
    return doc.Document(profile.name, "profile", sections, profile.created, version).filled()


def _setting(profile: Profile) -> doc.FigureList:
    """Return what was run, and further evidence for the verdict."""
    diagnosis, source = profile.diagnosis, profile.source
    unknown = "unknown: not opened by pipeprof.open_dataset"
    rows = [
        ("loader", loader_in_words(profile)),
        ("data", data_source(source) if source is not None else unknown),
        ("queue", _queue(profile)),
        ("device", _device(profile.device)),
        ("pauses", pauses_text(profile)),
        ("storage", diagnosis.evidence),
    ]
    if diagnosis.verdict == "inconclusive" and diagnosis.more_batches is not None:
        more = counted(diagnosis.more_batches, "more batch")
        rows.insert(0, ("to decide", f"run about {more}"))
    return doc.figures(rows)


def _queue(profile: Profile) -> str:
    depth = profile.queue_depth
    if depth is None:
        return ""
    ready = f"on average {depth.mean:.1f} of {counted(depth.capacity, 'batch')} ready"
    empty = format_share(depth.empty_share)
    return f"{ready} when one is requested; none in {empty} of the cases"


def _device(device: DeviceUse | None) -> str:
    if device is None:
        return ""
    parts = []
    if device.batches:
        idle = device.wait_s / (device.wait_s + device.busy_s or 1.0)
        parts.append(
            f"idle {format_share(idle)} of the time by its own events, over "
            f"{counted(device.batches, 'batch')}"
        )
    if device.utilisation is not None:
        parts.append(f"utilisation {format_share(device.utilisation)} as its driver reports it")
    if device.memory_bytes is not None:
        parts.append(f"at most {format_bytes(device.memory_bytes)} of its memory in use")
    return "; ".join(parts)
