"""Turn a recording into a profile: compute its figures, draw conclusions and put them in words."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from pipeprof.analyze.advice.advise import advise
from pipeprof.analyze.advice.disagreements import disagreements, worth_differs
from pipeprof.analyze.advice.findings import findings
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.more_workers import Simulate, more_workers, simulated_run
from pipeprof.analyze.advice.other_settings import simulated_rates
from pipeprof.analyze.advice.proposal import Proposal
from pipeprof.analyze.advice.roofline import limits
from pipeprof.analyze.advice.worth import worth
from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.profile.batch_table import Columns, slice_log, steady, take_rows
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.profile.limited_rate import limited_stage
from pipeprof.analyze.profile.pauses import with_pauses
from pipeprof.analyze.profile.pipeline_stages import busiest_stage, without_pauses
from pipeprof.analyze.profile.request_stats import request_stats
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stall_attribution import ranked
from pipeprof.analyze.profile.storage_bottleneck import StorageBound, storage_bound
from pipeprof.analyze.profile.unjudged import why_unjudged
from pipeprof.analyze.profile.verdict import diagnose, headline_figures, pauses
from pipeprof.analyze.wording.advice import recommendation
from pipeprof.analyze.wording.findings import finding
from pipeprof.analyze.wording.prediction import explain_prediction
from pipeprof.analyze.wording.report import ceilings, explanations
from pipeprof.analyze.wording.storage import explain_missing_fit, storage_evidence
from pipeprof.analyze.wording.verdict import headline
from pipeprof.model import (
    Ceiling,
    DataSource,
    DeviceUse,
    Diagnosis,
    Finding,
    LoaderConfig,
    Profile,
    QueueDepth,
    Recommendation,
    Recording,
    RequestStats,
    Skipped,
    Throughput,
    Worth,
)

KEPT_BATCHES = 2000
"""Number of last batches that a saved profile holds."""


def assemble(
    recording: Recording, threshold: float = 0.05, earlier: Summary | None = None
) -> Profile:
    """Return the profile of ``recording``.

    Args:
        recording: The run. Of a long run it holds only the last batches.
        threshold: The starved fraction, 0..1, from which the accelerator counts as starved.
        earlier: Figures of the batches of the same run that ``recording`` no longer holds.
    """
    recording, summary = _summarised(recording, earlier)
    analysis = _analysed(recording, summary, threshold)
    kept = len(recording.batches.index)
    return Profile(
        name=recording.name, created=recording.created, config=recording.config,
        environment=recording.environment, source=recording.source, cache=recording.cache,
        wall_s=summary.sums["wall_s"],
        warmup_batches=summary.total - summary.warmed_up,
        measured_batches=summary.measured,
        first_batch_s=recording.first_batch_s,
        throughput=_throughput(summary),
        stages=summary.stage_stats(), missing=recording.missing,
        workers=summary.worker_stats(), resources=summary.resource_stats(),
        stall_s=summary.sums["stall_s"],
        blame=analysis.blame, awaited_in=ranked(summary.charges.awaited_in),
        worth=analysis.worth, ceilings=analysis.ceilings, diagnosis=analysis.diagnosis,
        recommendations=analysis.recommendations, findings=analysis.findings,
        overhead=recording.overhead,
        batches=slice_log(recording.batches, max(0, kept - KEPT_BATCHES), kept),
        epochs=recording.epochs,
        queue_depth=_queue_depth(summary, recording.config),
        device=_device(summary, recording),
        requests=analysis.requests,
        lost_records=recording.lost_records,
        notes=(*recording.notes, *_left_out(recording.source)),
        unix_offset_s=recording.unix_offset_s,
        core_wait_share=recording.main.core_wait_share,
        stolen_share=recording.main.stolen_share,
        pauses=pauses(summary, recording.pause_kinds, threshold),
        pause_kinds=recording.pause_kinds,
        pipeline=recording.pipeline,
    )  # fmt: skip


def _summarised(recording: Recording, earlier: Summary | None) -> tuple[Recording, Summary]:
    """Return the recording with its pauses and only its sampled batches, and the run's figures."""
    summary = deepcopy(earlier) if earlier else Summary(recording.warmup_batches)
    marked = summary.add(Columns.of(recording.batches), recording.main.core_wait_share)
    summary.extrapolate()
    batches = with_pauses(recording.batches, marked)
    recording = replace(recording, batches=take_rows(batches, marked.watched))
    watched = Columns.of(recording.batches)
    limited = limited_stage(watched.take(steady(watched, recording.warmup_batches)))
    if limited is not None and summary.charges.is_awaited(limited):
        summary.charges.charge_all_to(limited)
    recording = replace(
        recording, pipeline=without_pauses(recording.pipeline, summary.sums["pause_s"])
    )
    if (bound := busiest_stage(recording.pipeline, summary.sums)) is not None:
        summary.charges.charge_pipeline(bound)
    return recording, summary


class _Analysis(NamedTuple):
    """What follows from the figures of a run, in the words of a profile."""

    blame: dict[str, float]
    requests: RequestStats | None
    diagnosis: Diagnosis
    worth: dict[str, Worth]
    ceilings: dict[str, Ceiling]
    recommendations: tuple[Recommendation, ...]
    findings: tuple[Finding, ...]


class WhatToTry(NamedTuple):
    """Changes of a loader that may make it faster."""

    recommendations: tuple[Recommendation, ...]
    simulated: dict[Setting, float]
    """Batches/s of other numbers of workers and prefetched batches."""
    batches_per_s: float
    """Of the run itself."""


def what_to_try(recording: Recording, threshold: float = 0.05) -> WhatToTry:
    """Return what may be faster than the setting of ``recording``.

    The arguments are those of `assemble`.
    """
    recording, summary = _summarised(recording, None)
    concluded = _conclude(recording, summary, threshold)
    facts = concluded.facts
    simulated = simulated_rates(facts, concluded.simulate)
    if not simulated:
        facts = replace(facts, more_workers=more_workers(facts, concluded.simulate))
    advice = tuple(in_words(each, facts) for each in advise(facts))
    return WhatToTry(advice, simulated, facts.rate / facts.samples)


class _Conclusions(NamedTuple):
    """What an analysis begins with."""

    blame: dict[str, float]
    requests: RequestStats | None
    storage: StorageBound
    facts: Facts
    simulate: Simulate
    """Starts the simulator, once."""


def _conclude(recording: Recording, summary: Summary, threshold: float) -> _Conclusions:
    """Diagnose the run."""
    blame = summary.charges.ranked_blame()
    requests = explain_missing_fit(request_stats(recording.requests))
    storage = storage_bound(summary, requests, recording.lone_requests, recording.source)
    unjudged = why_unjudged(recording, summary)
    diagnosis = diagnose(summary, blame, threshold, storage, unjudged)
    if diagnosis.evidence:
        evidence = storage_evidence(diagnosis.evidence, storage.figures, requests)
        diagnosis = replace(diagnosis, evidence=evidence)
    facts = Facts(recording, summary, diagnosis, requests)
    simulate = cache(lambda: simulated_run(facts))
    return _Conclusions(blame, requests, storage, facts, simulate)


def _analysed(recording: Recording, summary: Summary, threshold: float) -> _Analysis:
    """Draw the conclusions from ``summary``. The simulator starts at most once."""
    blame, requests, storage, facts, simulate = _conclude(recording, summary, threshold)
    worths, allowed = worth(facts, simulate), ceilings(limits(facts, storage), facts)
    facts = replace(facts, more_workers=more_workers(facts, simulate))
    proposals = advise(facts)
    found = disagreements(
        facts.diagnosis, blame, next(iter(allowed), None),
        proposals[0].setting if proposals else None, recording.config.num_workers,
        [each.name for each in recording.other_loaders],
    )  # fmt: skip
    named = {
        **headline_figures(summary, blame, storage),
        "reads_elsewhere": facts.reads_elsewhere,
        "taken_ahead": recording.taken_ahead,
        "unseen": recording.missing.get("fetch"),
        "others": ", ".join(each.name for each in recording.other_loaders),
    }
    diagnosis = replace(
        facts.diagnosis,
        headline=headline(facts.diagnosis, named),
        worth_note=" ".join(explanations(worth_differs(facts.diagnosis, blame, worths))),
        disagreements=explanations(found),
    )
    return _Analysis(
        blame, requests, diagnosis, worths, allowed,
        tuple(in_words(each, facts) for each in proposals),
        tuple(finding(code, figures, facts) for code, figures in findings(facts).items()),
    )  # fmt: skip


def in_words(proposal: Proposal, facts: Facts) -> Recommendation:
    """Return ``proposal`` as a recommendation, with what it would bring."""
    figures = explain_prediction(proposal.figures)
    words = recommendation(proposal.code, proposal.setting, figures, facts)
    return replace(words, **vars(proposal.outcome))


def _left_out(source: DataSource | None) -> tuple[str, ...]:
    """Return a note if damaged data was skipped. It has no counts, as these differ between the
    trials of a sweep."""
    if source is None or source.skipped in (None, Skipped(0, 0, 0)):
        return ()
    return ("Data that cannot be read was left out (on_error=skip): source.skipped counts it.",)


def _throughput(summary: Summary) -> Throughput:
    """Return the rates of the measured batches; 0 where none was measured."""
    sums, wall_s = summary.sums, summary.sums["wall_s"]
    if not wall_s > 0:
        return Throughput(0.0, 0.0, 0.0, (0.0, 0.0))
    return Throughput(
        samples_per_s=sums["samples"] / wall_s,
        batches_per_s=summary.measured / wall_s,
        bytes_per_s=sums["bytes"] / wall_s,
        interval=ratio_interval(summary.series["samples"], summary.series["cycle_s"]),
    )


def _queue_depth(summary: Summary, config: LoaderConfig) -> QueueDepth | None:
    """Return how many batches lay ready when one was asked for; ``None`` where that is unknown."""
    depth = summary.depth
    if not depth.count:
        return None
    return QueueDepth(
        mean=depth.mean,
        p5=depth.quantiles(0.05)[0],
        empty_share=summary.sums["empty"] / depth.count,
        capacity=config.num_workers * (config.prefetch_factor or 1),
    )


def _device(summary: Summary, recording: Recording) -> DeviceUse | None:
    """Return the use of the accelerator; ``None`` where nothing of it was measured."""
    sums, main = summary.sums, recording.main
    if not sums["device_batches"] and main.device_memory_bytes is None:
        return None
    return DeviceUse(
        wait_s=sums["device_wait_s"],
        busy_s=sums["device_busy_s"],
        batches=int(sums["device_batches"]),
        utilisation=main.device_utilisation,
        memory_bytes=main.device_memory_bytes,
    )
