"""What another setting would bring, by the roofline of one run. An estimate: nothing was tried.

A turn of the training loop takes at least as long as main's own part in it; as the workers need
for a batch, shared among them; and as the cores need for its CPU time.
"""

from __future__ import annotations

from math import ceil, isfinite, isnan, nan

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.thresholds import LEAST_SLOW_BATCHES, SPARE_CAPACITY
from pipeprof.model import Stage

_WEIGH = 0.1
"""Of the time to make all batches."""
_NEVER_RESTS = 0.8
"""Of the time, in making batches; and of that, computing."""
_IDLE = 0.25
"""Of a worker: to keep cores busy for so little, none is added."""
_SHARE_OF_MEMORY = 0.5
"""That prefetched batches may fill: other loaders and processes live there too."""
_SHARE_OF_DESCRIPTORS = 0.5
"""That their tensors may hold, one each."""
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
    received_s = receiving_s(facts) if received_s is None else received_s
    pinning_s = facts.stage_s(Stage.PIN)
    if facts.workers and not isnan(pinning_s):
        # a thread beside the training receives and pins
        main_s = max(facts.step_s + facts.picking_s, received_s + pinning_s)
    else:
        main_s = facts.step_s + facts.picking_s + received_s
    cores_s = facts.cpu_s / facts.cores_left
    return main_s if isnan(cores_s) else max(main_s, cores_s)


def receiving_s(facts: Facts) -> float:
    """What main needs to receive a batch. From a worker that computes without a rest it also waits
    for that one's interpreter, which is nothing that it would do for others: then, no more than
    main computes in all."""
    computes = facts.cpu_s > _NEVER_RESTS * facts.made_s
    rests = facts.made_s < _NEVER_RESTS * facts.workers * facts.cycle_s
    if not computes or rests or facts.main.cpu_s is None:
        return facts.received_s
    return min(facts.received_s, facts.main_cores * facts.cycle_s)


def best_workers(facts: Facts) -> int:
    """The fewest workers that are as good as any number of them."""
    turn_s = least_turn_s(facts)
    wanted = facts.work_s / turn_s if turn_s else nan
    if not isfinite(wanted):
        return max(1, facts.workers)
    return max(1, min(ceil(wanted * SPARE_CAPACITY - 1e-9), room_for(facts)))


def slow_ones_wanted(facts: Facts) -> int:
    """More batches to run before a number can be put on anything: until so many slow ones were
    seen that their share is known, where they weigh; 0: enough were."""
    sums = facts.summary.sums
    seen, weigh = sums["slow"], sums["slow_s"] > _WEIGH * facts.summary.made.total
    if not seen or not weigh or seen >= LEAST_SLOW_BATCHES:
        return 0
    return ceil(facts.summary.measured * (LEAST_SLOW_BATCHES / seen - 1))


def room_for(facts: Facts) -> int:
    """The most workers that cores, memory and descriptors allow."""
    return min(8 * facts.cores, enough_for_cores(facts), most_workers(facts))


def enough_for_cores(facts: Facts) -> int:
    """The fewest workers that keep all free cores busy; a large number where nothing is known."""
    if not facts.cpu_s:
        return _ANY
    wanted = facts.cores_left * facts.work_s / facts.cpu_s
    return max(1, ceil(wanted - _IDLE)) if isfinite(wanted) else _ANY


def most_workers(facts: Facts) -> int:
    """Whose prefetched batches find room in shared memory and in RAM; at least 1."""
    return max(1, most_batches(facts) // facts.prefetch)


def most_prefetch(facts: Facts) -> int:
    """The same for the prefetch factor, with as many workers as now."""
    return max(1, most_batches(facts) // max(1, facts.workers))


def most_batches(facts: Facts) -> int:
    """That may be asked for at once, beside the one in use; a large number where nothing is
    known."""
    main, most = facts.main, float(_ANY)
    for size in (main.shared_memory_bytes, main.available_bytes):
        if size is not None and facts.batch_bytes > 0:
            most = min(most, size * _SHARE_OF_MEMORY / facts.batch_bytes)
    if main.descriptor_limit and main.sharing == "file_descriptor" and facts.tensors > 0:
        most = min(most, main.descriptor_limit * _SHARE_OF_DESCRIPTORS / facts.tensors)
    return int(most) - 1


def absorbing_prefetch(facts: Facts) -> int:
    """The prefetch factor with which the batches under way last for one slow batch."""
    under_way = facts.slow_s / least_turn_s(facts)
    return ceil(under_way / max(1, facts.workers)) if isfinite(under_way) else facts.prefetch


def cores_are_the_limit(facts: Facts) -> bool:
    """Of what any number of workers could do."""
    return facts.cpu_s / facts.cores_left >= least_turn_s(facts)
