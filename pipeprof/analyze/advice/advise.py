"""What to change, from one run: the cure that fits the cause, best first.

More workers are proposed only where they help: not where the cores are used up, where the training
process is busy receiving, picking or pinning batches, or where a few slow batches hold up the rest.
Where no setting feeds the accelerator it says what would: cores, bandwidth, larger batches, and how
much of them.
What other numbers of workers would give is simulated before, every other rate an estimate by the
roofline; either says so, and `pipeprof sweep` measures.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeprof.analyze.advice import capacity_needed
from pipeprof.analyze.advice.findings import cores, main_process, order, start, transfer
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import PredictedEffect, Proposal
from pipeprof.analyze.advice.roofline_estimate import cores_are_the_limit, enough_for_cores, rate
from pipeprof.analyze.profile.stall_attribution import SAMPLER
from pipeprof.analyze.thresholds import LEAST_GAIN, LEAST_SLOW_BATCHES, MANY_TENSORS, MOSTLY
from pipeprof.model import Stage

_MOST = 3
"""Proposals in a report."""


def advise(facts: Facts) -> tuple[Proposal, ...]:
    """Empty when nothing needs to change, or nothing is known."""
    always = (*_keep_workers(facts), *_pin_copies(facts))  # the verdict leaves out what these cost
    if not (facts.starved and facts.made_s > 0):
        return always
    cures = _cures(facts)
    codes = {change.code for change in cures}
    more = () if capacity_needed.feeds(facts, cures) else capacity_needed.everything(facts)
    short = [change for change in more if change.code not in codes]
    return (*cures, *short, *always)[:_MOST]


def _cures(facts: Facts) -> list[Proposal]:
    """The first that has something to say is heard: its cause hides what the others would see."""
    more_workers = [facts.more_workers] if facts.more_workers else []
    for cure in (_crowd, _receive):
        if found := list(cure(facts)):
            return found
    if order.stalled_by_slow_batches(facts) and (found := [*_pass_slow(facts), *more_workers]):
        return found
    if found := list(_lighten_main(facts)):
        return [*found, *more_workers]
    return more_workers or list(_cheaper(facts))


def _crowd(facts: Facts) -> Iterator[Proposal]:
    """More work for the cores than there are cores."""
    if threads := cores.native_crowd(facts):
        figures = {"threads": threads, "all_threads": facts.workers * threads}
        yield Proposal("one-thread", "worker_init_fn", figures)
    elif cores.cores_are_contended(facts) and (fewer := enough_for_cores(facts)) < facts.workers:
        yield Proposal("fewer-workers", "num_workers", {"fewer": fewer})
        yield from _cheaper(facts)


def _receive(facts: Facts) -> list[Proposal]:
    """One process receives what all workers make."""
    found = []
    if transfer.receiving_bound(facts) and facts.tensors >= MANY_TENSORS:
        each_s = facts.received_s / facts.tensors
        packed = rate(facts, facts.workers, received_s=each_s)
        if packed >= LEAST_GAIN * facts.rate:
            found.append(
                Proposal("pack", "collate_fn", {"each_s": each_s}, PredictedEffect(packed))
            )
    if transfer.inline_is_faster(facts):
        figures = {"transfer_s": facts.stage_s(Stage.TRANSFER)}
        found.append(
            Proposal("no-workers", "num_workers", figures, PredictedEffect(rate(facts, 0)))
        )
    return sorted(found, key=lambda change: -(change.outcome.predicted_samples_per_s or 0.0))


def _pass_slow(facts: Facts) -> Iterator[Proposal]:
    """A few slow batches hold up the rest."""
    enough = facts.summary.sums["slow"] >= LEAST_SLOW_BATCHES
    if order.out_of_order_helps(facts):
        outcome = PredictedEffect(rate(facts, facts.workers, in_order=False) if enough else None)
        yield Proposal("out-of-order", "in_order", {}, outcome)
    if (prefetch := order.useful_prefetch(facts)) is not None:
        outcome = PredictedEffect(rate(facts, facts.workers, prefetch) if enough else None)
        figures = {
            "wanted": prefetch,
            "wanted_under_way": facts.workers * prefetch,
            "under_way": facts.workers * facts.prefetch,
        }
        yield Proposal("more-prefetch", "prefetch_factor", figures, outcome)


def _lighten_main(facts: Facts) -> Iterator[Proposal]:
    """The training process picks indices, or pins, more slowly than it trains."""
    if main_process.sampler_bound(facts):
        yield Proposal("draw-at-once", "sampler", {"each_s": facts.blamed_s(SAMPLER)})
    if main_process.pinning_bound(facts):
        yield Proposal("no-pinning", "pin_memory", {"pin_s": facts.stage_s(Stage.PIN)})


def _cheaper(facts: Facts) -> list[Proposal]:
    """No setting of the loader helps."""
    if short := list(capacity_needed.everything(facts)):
        return short
    if cores_are_the_limit(facts) or cores.cores_are_contended(facts):
        code = "cheaper-on-cores"
    elif facts.blamed_on_workers >= MOSTLY:
        code = "cheaper-batches"
    else:
        code = "larger-batches"
    figures = {"main_s": facts.received_s + facts.picking_s}
    return [Proposal(code, facts.diagnosis.bottleneck or "the data path", figures)]


def _keep_workers(facts: Facts) -> Iterator[Proposal]:
    """Workers that start anew in each epoch."""
    if start.starts_each_epoch(facts):
        yield Proposal("keep-workers", "persistent_workers", {"each_s": start.start_up_s(facts)})


def _pin_copies(facts: Facts) -> Iterator[Proposal]:
    """Copies to the device that the host waits for, or that the driver copies twice."""
    pageable = facts.main.pageable_copies and not facts.config.pin_memory
    named = {"pin_memory": pageable, "non_blocking": facts.main.blocking_copies}
    names = [name for name, missing in named.items() if missing]
    if names and main_process.copies_matter(facts):
        figures = {"copied_s": facts.stage_s(Stage.H2D), "both": len(names) > 1}
        yield Proposal("pinned-copies", " + ".join(names), figures)
