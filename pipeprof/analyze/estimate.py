"""What another setting would bring, by the roofline of one run. An estimate: nothing was tried.

A turn of the training loop takes at least as long as main's own part in it; as the workers need
for a batch, shared among them; and as the cores need for its CPU time.
"""

from __future__ import annotations

from math import ceil, isfinite, isnan, nan

from pipeprof.analyze.facts import Facts
from pipeprof.model import Stage

WORTHWHILE = 1.1
"""Less than a tenth more is not worth a change."""
_SPARE = 1.15
"""Workers that are only just fast enough let the accelerator wait whenever one is late."""
_IDLE = 0.25
"""Of a worker: to keep cores busy for so little, none is added."""
_SHARE_OF_MEMORY = 0.5
"""That prefetched batches may fill: other loaders and processes live there too."""
_ANY = 10**6


def rate(
    facts: Facts,
    workers: int,
    prefetch: int | None = None,
    in_order: bool | None = None,
    received_s: float | None = None,
) -> float:
    """Samples/s with so many workers; the other settings, and main's time to receive a batch, are
    as they were unless given."""
    if not workers:
        return facts.samples / (facts.made_s + facts.picking_s + facts.step_s)
    turn_s = max(least_turn_s(facts, received_s), facts.work_s / workers)
    if facts.config.in_order if in_order is None else in_order:
        # a slow batch is waited for, once the batches under way are used up
        outlasted_s = workers * (prefetch or facts.prefetch) * turn_s
        turn_s += facts.slow_share * max(0.0, facts.slow_s - outlasted_s)
    return facts.samples / turn_s


def least_turn_s(facts: Facts, received_s: float | None = None) -> float:
    """The shortest turn of the loop that any number of workers allows."""
    received_s = facts.received_s if received_s is None else received_s
    pinning_s = facts.stage_s(Stage.PIN)
    if facts.workers and not isnan(pinning_s):
        # a thread beside the training receives and pins
        main_s = max(facts.step_s + facts.picking_s, received_s + pinning_s)
    else:
        main_s = facts.step_s + facts.picking_s + received_s
    cores_s = facts.cpu_s / facts.cores_left
    return main_s if isnan(cores_s) else max(main_s, cores_s)


def best_workers(facts: Facts) -> int:
    """The fewest workers that are as good as any number of them."""
    turn_s = least_turn_s(facts)
    wanted = facts.work_s / turn_s if turn_s else nan
    if not isfinite(wanted):
        return max(1, facts.workers)
    wanted = min(ceil(wanted * _SPARE - 1e-9), 8 * facts.environment.cores)
    return max(1, min(wanted, enough_for_cores(facts), most_workers(facts)))


def helpful_workers(facts: Facts) -> int | None:
    """How many more of them are worth it; ``None`` when more of them are not."""
    wanted = best_workers(facts)
    helps = wanted > facts.workers and rate(facts, wanted) >= WORTHWHILE * facts.rate
    return wanted if helps else None


def enough_for_cores(facts: Facts) -> int:
    """The fewest workers that keep all free cores busy; a large number where nothing is known."""
    wanted = facts.cores_left * facts.work_s / facts.cpu_s
    return max(1, ceil(wanted - _IDLE)) if isfinite(wanted) else _ANY


def most_workers(facts: Facts) -> int:
    """Whose prefetched batches find room in shared memory and in RAM; at least 1."""
    return max(1, most_batches(facts) // facts.prefetch)


def most_prefetch(facts: Facts) -> int:
    """The same for the prefetch factor, with as many workers as now."""
    return max(1, most_batches(facts) // max(1, facts.workers))


def most_batches(facts: Facts) -> int:
    """That may be under way at once; a large number where nothing is known."""
    sizes = (facts.main.shared_memory_bytes, facts.main.available_bytes)
    known = [size for size in sizes if size is not None]
    if not known or not facts.batch_bytes > 0:
        return _ANY
    return int(min(known) * _SHARE_OF_MEMORY / facts.batch_bytes)


def absorbing_prefetch(facts: Facts) -> int:
    """The prefetch factor with which the batches under way last for one slow batch."""
    under_way = facts.slow_s / least_turn_s(facts)
    return ceil(under_way / max(1, facts.workers)) if isfinite(under_way) else facts.prefetch


def cores_are_the_limit(facts: Facts) -> bool:
    """Of what any number of workers could do."""
    return facts.cpu_s / facts.cores_left >= least_turn_s(facts)
