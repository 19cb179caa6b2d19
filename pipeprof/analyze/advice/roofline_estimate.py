"""Estimate the effect of other settings by the roofline of one run; nothing is tried.

A cycle of the training loop takes at least as long as the training process's own part of it. It
also takes at least the workers' time for a batch, shared among them, and the cores' time for it.
"""

from __future__ import annotations

from math import ceil, isfinite, isnan, nan

from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.thresholds import LEAST_SLOW_BATCHES, SPARE_CAPACITY
from pipeprof.model import Stage

_LEAST_SLOW_SHARE = 0.1
"""Share of the time to build all batches from which on slow batches matter."""
_ALWAYS_BUSY = 0.8
"""Share of the time in building batches, and of that in computing, of a worker that never rests."""
_LEAST_WORKER = 0.25
"""Fraction of a worker from which on another one is added to keep the cores busy."""
_MEMORY_SHARE = 0.5
"""Share of the memory that prefetched batches may fill; other processes need the rest."""
_DESCRIPTOR_SHARE = 0.5
"""Share of the limit of descriptors that tensors of prefetched batches may use, one each."""
_UNLIMITED = 10**6


def rate(
    facts: Facts,
    workers: int,
    prefetch: int | None = None,
    in_order: bool | None = None,
    received_s: float | None = None,
) -> float:
    """Return the samples/s with ``workers``. Other arguments default to the values of the run.
    ``received_s`` is main's time to receive a batch."""
    if not workers:
        host_s = facts.made_s + facts.picking_s + facts.host_step_s + facts.others_received_s
        return facts.samples / max(host_s, facts.step_s)
    cycle_s = max(least_cycle_s(facts, received_s), work_in_worker_s(facts) / workers)
    if facts.config.in_order if in_order is None else in_order:
        # main waits for a slow batch once the prefetched ones are used up
        prefetched_s = workers * (prefetch or facts.prefetch) * cycle_s
        cycle_s += facts.slow_share * max(0.0, facts.slow_s - prefetched_s)
    return facts.samples / cycle_s


def batch_memory_s(facts: Facts) -> tuple[float, float]:
    """Return the CPU seconds to use the shared memory of a batch first, and to give it back. Both
    are 0 where they are unknown."""
    main, size = facts.main, facts.summary.gauges["batch_bytes"].mean
    first_s, back_s = main.new_shared_s_per_byte or 0.0, main.release_shared_s_per_byte or 0.0
    return (0.0, 0.0) if isnan(size) else (first_s * size, back_s * size)


def sharing_s(facts: Facts) -> float:
    """Return the CPU seconds that a worker takes longer for a batch than the training process,
    since it needs new shared memory for the tensors. The training process may have needed new
    private memory. 0 where workers were measured."""
    private = facts.summary.gauges["collate_new_bytes"].mean
    saved_s = (facts.main.new_private_s_per_byte or 0.0) * (0.0 if isnan(private) else private)
    return 0.0 if facts.workers else max(0.0, batch_memory_s(facts)[0] - saved_s)


def release_s(facts: Facts) -> float:
    """Return the CPU seconds by which the training step would be longer with workers, as it drops a
    batch and its shared memory. 0 where workers were measured, whose steps include them."""
    return 0.0 if facts.workers else batch_memory_s(facts)[1]


def work_in_worker_s(facts: Facts) -> float:
    """Return the seconds that a worker takes for a batch if a core is always free."""
    return facts.work_s + sharing_s(facts)


def cpu_in_worker_s(facts: Facts) -> float:
    """Return the CPU seconds that a worker and its native threads take for a batch."""
    return facts.cpu_s + sharing_s(facts)


def least_cycle_s(facts: Facts, received_s: float | None = None) -> float:
    """Return the shortest cycle of the loop that any number of workers allows, in seconds."""
    received_s = receiving_s(facts) if received_s is None else received_s
    pinning_s = facts.stage_s(Stage.PIN)
    host_s = facts.host_step_s + facts.others_received_s + facts.picking_s + release_s(facts)
    if facts.workers and not isnan(pinning_s):
        # a thread receives and pins while the step runs
        host_s = max(host_s, received_s + pinning_s)
    else:
        host_s += received_s
    main_s = max(host_s, facts.step_s)
    cores_s = cpu_in_worker_s(facts) / facts.cores_left
    return main_s if isnan(cores_s) else max(main_s, cores_s)


def receiving_s(facts: Facts) -> float:
    """Return the seconds that main needs to receive a batch. From workers that compute all the
    time, main also waits for their interpreter. More workers would not make it wait more, so the
    result is then at most what main computes in all."""
    computes = facts.cpu_s > _ALWAYS_BUSY * facts.made_s
    rests = facts.made_s < _ALWAYS_BUSY * facts.workers * facts.cycle_s
    if not computes or rests or facts.main.cpu_s is None:
        return facts.received_s
    return min(facts.received_s, facts.main_cores * facts.cycle_s)


def best_workers(facts: Facts) -> int:
    """Return the fewest workers that are as good as any number of them."""
    cycle_s = least_cycle_s(facts)
    wanted = work_in_worker_s(facts) / cycle_s if cycle_s else nan
    if not isfinite(wanted):
        return max(1, facts.workers)
    return max(1, min(ceil(wanted * SPARE_CAPACITY - 1e-9), possible_workers(facts)))


def batches_to_predict(facts: Facts) -> int:
    """Return how many more batches must run before a rate can be predicted; 0 if none. Where slow
    batches take much of the time, their share must be known."""
    sums = facts.summary.sums
    slow, matters = sums["slow"], sums["slow_s"] > _LEAST_SLOW_SHARE * facts.summary.made.total
    if not slow or not matters or slow >= LEAST_SLOW_BATCHES:
        return 0
    return ceil(facts.summary.measured * (LEAST_SLOW_BATCHES / slow - 1))


def possible_workers(facts: Facts) -> int:
    """Return the most workers that cores, memory and descriptors allow."""
    return min(8 * facts.cores, enough_for_cores(facts), most_workers(facts))


def enough_for_cores(facts: Facts) -> int:
    """Return the fewest workers that keep all free cores busy; a large number if unknown."""
    if not facts.cpu_s:
        return _UNLIMITED
    wanted = facts.cores_left * work_in_worker_s(facts) / cpu_in_worker_s(facts)
    return max(1, ceil(wanted - _LEAST_WORKER)) if isfinite(wanted) else _UNLIMITED


def most_workers(facts: Facts) -> int:
    """Return the most workers whose prefetched batches fit into memory; at least 1."""
    return max(1, most_batches(facts) // facts.prefetch)


def most_prefetch(facts: Facts) -> int:
    """Return the largest prefetch factor that fits with the present workers; at least 1."""
    return max(1, most_batches(facts) // max(1, facts.workers))


def most_batches(facts: Facts) -> int:
    """Return how many batches may be requested at once; a large number if unknown. They must fit
    into shared memory, RAM and the limit of descriptors, as must the one in use."""
    main, most = facts.main, float(_UNLIMITED)
    for size in (main.shared_memory_bytes, main.available_bytes):
        if size is not None and facts.batch_bytes > 0:
            most = min(most, size * _MEMORY_SHARE / facts.batch_bytes)
    if main.descriptor_limit and main.sharing == "file_descriptor" and facts.tensors > 0:
        most = min(most, main.descriptor_limit * _DESCRIPTOR_SHARE / facts.tensors)
    return int(most) - 1


def fits_memory(facts: Facts, workers: int, prefetch: int) -> bool:
    """Return whether so many more workers, with their prefetched batches, fit into the available
    memory. True where that is unknown."""
    private = facts.summary.gauges["private_bytes"].mean if facts.workers else nan
    wanted = workers * (private + prefetch * facts.batch_bytes)
    available = facts.main.available_bytes
    return available is None or isnan(wanted) or wanted <= _MEMORY_SHARE * available


def absorbing_prefetch(facts: Facts) -> int:
    """Return the prefetch factor with which prefetched batches last for one slow batch."""
    batches = facts.slow_s / least_cycle_s(facts)
    return ceil(batches / max(1, facts.workers)) if isfinite(batches) else facts.prefetch


def cores_are_the_limit(facts: Facts) -> bool:
    """Return whether CPU time limits the rate of any number of workers."""
    return cpu_in_worker_s(facts) / facts.cores_left >= least_cycle_s(facts)
