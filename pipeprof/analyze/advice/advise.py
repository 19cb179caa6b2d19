"""Propose what to change, from one run, best first.

More workers do not help where the cores are used up, where the training process is busy with
batches, or where a few slow batches delay the others. Where no setting feeds the accelerator, the
proposals say how much more of what would: cores, bandwidth, larger batches. Rates with more workers
are simulated, all others are estimates by the roofline; `pipeprof sweep` measures them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeprof.analyze.advice import capacity_needed, pipeline
from pipeprof.analyze.advice.findings import (
    cores,
    epochs,
    main_process,
    order,
    start,
    transfer,
)
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import PredictedEffect, Proposal
from pipeprof.analyze.advice.roofline_estimate import cores_are_the_limit, enough_for_cores, rate
from pipeprof.analyze.profile.stage_times import CPU
from pipeprof.analyze.profile.stall_attribution import OTHER_LOADERS, SAMPLER
from pipeprof.analyze.thresholds import LEAST_GAIN, LEAST_SLOW_BATCHES, MANY_TENSORS, MOSTLY
from pipeprof.model import Stage

_MOST_PROPOSALS = 3


def advise(facts: Facts) -> tuple[Proposal, ...]:
    """Return at most three proposals; none when nothing needs to change, or nothing is known."""
    if iterator := epochs.iterator_per_batch.find(facts):
        return (Proposal("keep-iterator", "iterator", iterator),)
    # the verdict leaves out the time that these cost, so they do not depend on it
    kept, pinned = tuple(_persistent_workers(facts)), tuple(_pinned_copies(facts))
    always = (*kept, *pinned)
    if facts.starved and (found := pipeline.proposals(facts)):
        return (*found, *always)[:_MOST_PROPOSALS]
    if not (facts.starved and facts.made_s > 0):
        return always
    if facts.diagnosis.bottleneck == OTHER_LOADERS and not facts.more_workers:
        return always  # the profiles of the others say what to change
    if facts.config.kind == "other":  # a generator: nothing is known of how others make a batch
        return (*_move_to_workers(facts), *always)[:_MOST_PROPOSALS]
    fixes = _fixes(facts)
    codes = {each.code for each in fixes}
    needed = () if capacity_needed.feeds(facts, fixes) else capacity_needed.capacities(facts)
    others = [each for each in needed if each.code not in codes]
    if start.costs_more_than(facts, _stall_saved_s(facts, fixes[0])):
        return (*kept, *fixes, *others, *pinned)[:_MOST_PROPOSALS]
    return (*fixes, *others, *always)[:_MOST_PROPOSALS]


def _move_to_workers(facts: Facts) -> Iterator[Proposal]:
    """Propose workers for what a generator computes in the training loop's thread. What blocks it
    may be made by a thread already."""
    if facts.summary.share_of_fetch(CPU) < MOSTLY:
        return
    if more := facts.more_workers:
        yield Proposal("in-data-loader", more.setting, more.figures, more.outcome)
    else:
        yield from _no_setting_helps(facts)


def _stall_saved_s(facts: Facts, fix: Proposal) -> float:
    """Return the seconds of a typical epoch that ``fix`` is predicted to save; all of its stall
    where nothing is predicted."""
    predicted = fix.outcome.predicted_samples_per_s
    share = 1 - facts.rate / predicted if predicted else facts.diagnosis.starved_fraction
    return share * start.steady_s(facts)


def _fixes(facts: Facts) -> list[Proposal]:
    """Return the proposals for the first cause that applies, since it hides the later ones."""
    more_workers = [facts.more_workers] if facts.more_workers else []
    for fix in (_relieve_cores, _relieve_receiving):
        if found := list(fix(facts)):
            return found
    if order.stalled_by_slow_batches(facts) and (found := [*_absorb_slow(facts), *more_workers]):
        return found
    if found := list(_relieve_main(facts)):
        return [*found, *more_workers]
    return more_workers or list(_no_setting_helps(facts))


def _relieve_cores(facts: Facts) -> Iterator[Proposal]:
    """Propose fewer threads or workers where they want more cores than there are."""
    if threads := cores.oversubscribing_threads(facts):
        figures = {"threads": threads, "all_threads": facts.workers * threads}
        yield Proposal("one-thread", "worker_init_fn", figures)
    elif cores.cores_are_contended(facts) and (fewer := enough_for_cores(facts)) < facts.workers:
        yield Proposal("fewer-workers", "num_workers", {"fewer": fewer})
        yield from _no_setting_helps(facts)


def _relieve_receiving(facts: Facts) -> list[Proposal]:
    """Propose packed tensors or no workers where receiving batches limits the training process."""
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
    return sorted(found, key=lambda each: -(each.outcome.predicted_samples_per_s or 0.0))


def _absorb_slow(facts: Facts) -> Iterator[Proposal]:
    """Propose to reorder batches or to prefetch more, where a few slow batches delay the others."""
    enough = facts.summary.sums["slow"] >= LEAST_SLOW_BATCHES
    if order.out_of_order_helps(facts):
        outcome = PredictedEffect(rate(facts, facts.workers, in_order=False) if enough else None)
        yield Proposal("out-of-order", "in_order", {}, outcome)
    if (prefetch := order.useful_prefetch(facts)) is not None:
        outcome = PredictedEffect(rate(facts, facts.workers, prefetch) if enough else None)
        figures = {
            "wanted": prefetch,
            "wanted_prefetched": facts.workers * prefetch,
            "prefetched": facts.workers * facts.prefetch,
        }
        yield Proposal("more-prefetch", "prefetch_factor", figures, outcome)


def _relieve_main(facts: Facts) -> Iterator[Proposal]:
    """Propose less work for the training process where picking indices or pinning is slow."""
    if main_process.sampler_bound(facts):
        yield Proposal("draw-at-once", "sampler", {"each_s": facts.blamed_s(SAMPLER)})
    if main_process.pinning_bound(facts):
        yield Proposal("no-pinning", "pin_memory", {"pin_s": facts.stage_s(Stage.PIN)})


def _no_setting_helps(facts: Facts) -> list[Proposal]:
    """Propose what to change where no setting of the loader helps."""
    if needed := list(capacity_needed.capacities(facts)):
        return needed
    if cores_are_the_limit(facts) or cores.cores_are_contended(facts):
        code = "cheaper-on-cores"
    elif facts.blamed_on_workers >= MOSTLY:
        code = "cheaper-batches"
    else:
        code = "larger-batches"
    figures = {"main_s": facts.received_s + facts.picking_s}
    return [Proposal(code, facts.diagnosis.bottleneck or "the data path", figures)]


def _persistent_workers(facts: Facts) -> Iterator[Proposal]:
    if start.starts_each_epoch(facts):
        each_s, epoch_s = start.start_up_s(facts), start.epoch_s(facts)
        outcome = PredictedEffect(predicted_epoch_saving=min(1.0, each_s / epoch_s))
        figures = {"each_s": each_s, "epoch_s": epoch_s}
        yield Proposal("keep-workers", "persistent_workers", figures, outcome)


def _pinned_copies(facts: Facts) -> Iterator[Proposal]:
    """Propose pinned, asynchronous copies to the device where the host waits for copies."""
    pageable = facts.main.pageable_copies and not facts.config.pin_memory
    missing = {"pin_memory": pageable, "non_blocking": facts.main.blocking_copies}
    names = [name for name, count in missing.items() if count]
    if names and main_process.copies_matter(facts):
        figures = {"copied_s": facts.stage_s(Stage.H2D), "both": len(names) > 1}
        yield Proposal("pinned-copies", " + ".join(names), figures)
