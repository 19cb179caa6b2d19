"""From what was measured to a profile: the one way there."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

from pipeprof.analyze.advice.advise import advise
from pipeprof.analyze.advice.disagreements import disagreements
from pipeprof.analyze.advice.findings import findings
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.more_workers import more_workers, simulated_run
from pipeprof.analyze.advice.proposal import Proposal
from pipeprof.analyze.advice.roofline import limits
from pipeprof.analyze.advice.worth import worth
from pipeprof.analyze.profile.batch_table import Columns, slice_log, steady, take_rows
from pipeprof.analyze.profile.intervals import ratio_interval
from pipeprof.analyze.profile.limited_rate import limited_stage
from pipeprof.analyze.profile.pauses import with_pauses
from pipeprof.analyze.profile.request_stats import request_stats
from pipeprof.analyze.profile.run_summary import Summary
from pipeprof.analyze.profile.stall_attribution import ranked
from pipeprof.analyze.profile.storage_bottleneck import storage_bound
from pipeprof.analyze.profile.verdict import diagnose, headline_figures, pauses
from pipeprof.analyze.wording.advice import recommendation
from pipeprof.analyze.wording.findings import finding
from pipeprof.analyze.wording.report import ceilings, explanations
from pipeprof.analyze.wording.verdict import headline
from pipeprof.model import (
    DataSource,
    DeviceUse,
    LoaderConfig,
    Profile,
    QueueDepth,
    Recommendation,
    Recording,
    Skipped,
    Throughput,
)

KEPT_BATCHES = 2000
"""A saved profile holds the last so many batches."""


def assemble(
    recording: Recording, threshold: float = 0.05, earlier: Summary | None = None
) -> Profile:
    """Analyse ``recording``, and the batches ``earlier`` in the same run that it no longer holds.
    ``threshold`` is the starved share that counts as starved."""
    recording, summary = _summarised(recording, earlier)
    charges = summary.ranked_blame()
    requests = request_stats(recording.requests)
    storage = storage_bound(summary, requests, recording.lone_requests, recording.source)
    diagnosis = diagnose(summary, charges, threshold, storage)
    facts = Facts(recording, summary, diagnosis, requests)
    simulate = cache(lambda: simulated_run(facts))
    worths, allowed = worth(facts, simulate), ceilings(limits(facts, storage), facts)
    facts = replace(facts, more_workers=more_workers(facts, simulate))
    proposals = advise(facts)
    differ = disagreements(
        diagnosis, charges, worths, next(iter(allowed), None),
        proposals[0].setting if proposals else None, recording.config.num_workers,
    )  # fmt: skip
    diagnosis = replace(
        diagnosis,
        headline=headline(diagnosis, headline_figures(summary, charges, storage)),
        disagreements=explanations(differ),
    )
    kept = len(recording.batches.index)
    return Profile(
        name=recording.name,
        created=recording.created,
        config=recording.config,
        environment=recording.environment,
        source=recording.source,
        cache=recording.cache,
        wall_s=summary.sums["wall_s"],
        warmup_batches=summary.total - summary.warmed_up,
        measured_batches=summary.measured,
        first_batch_s=recording.first_batch_s,
        throughput=_throughput(summary),
        stages=summary.stage_stats(),
        missing=recording.missing,
        workers=summary.worker_stats(),
        stall_s=summary.sums["stall_s"],
        blame=charges,
        awaited_in=ranked(summary.awaited_in),
        worth=worths,
        ceilings=allowed,
        diagnosis=diagnosis,
        recommendations=tuple(in_words(each, facts) for each in proposals),
        findings=tuple(finding(code, figures, facts) for code, figures in findings(facts).items()),
        overhead=recording.overhead,
        batches=slice_log(recording.batches, max(0, kept - KEPT_BATCHES), kept),
        resources=summary.resource_stats(),
        epochs=recording.epochs,
        queue_depth=_queue_depth(summary, recording.config),
        device=_device(summary, recording),
        requests=requests,
        lost_records=recording.lost_records,
        notes=(*recording.notes, *_left_out(recording.source)),
        unix_offset_s=recording.unix_offset_s,
        stolen_share=recording.main.stolen_share,
        pauses=pauses(summary, recording.pause_kinds, threshold),
        pause_kinds=recording.pause_kinds,
    )


def _summarised(recording: Recording, earlier: Summary | None) -> tuple[Recording, Summary]:
    """The recording with its pauses and only the batches that were watched, and its figures."""
    summary = deepcopy(earlier) if earlier else Summary(recording.warmup_batches)
    every = summary.add(Columns.of(recording.batches))
    summary.extrapolate()
    batches = with_pauses(recording.batches, every)
    recording = replace(recording, batches=take_rows(batches, every.watched))
    watched = Columns.of(recording.batches)
    limited = limited_stage(watched.take(steady(watched, recording.warmup_batches)))
    if limited is not None:
        summary.charge_all_to(limited)
    return recording, summary


def in_words(proposal: Proposal, facts: Facts) -> Recommendation:
    """What ``proposal`` says, with what it would bring."""
    words = recommendation(proposal.code, proposal.setting, proposal.figures, facts)
    return replace(words, **vars(proposal.outcome))


def _left_out(source: DataSource | None) -> tuple[str, ...]:
    """A note without the counts, which differ between the trials of a sweep."""
    if source is None or source.skipped in (None, Skipped(0, 0, 0)):
        return ()
    return ("Data that cannot be read was left out (on_error=skip): source.skipped counts it.",)


def _throughput(summary: Summary) -> Throughput:
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
