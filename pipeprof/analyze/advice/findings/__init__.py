"""Named pathologies that a run shows. One function per case; each returns what it has seen or None.

To add one: write the function into the file of its theme, say in its docstring what it is, how it
is seen and what cures it, put it into `CASES`, and provoke it in a test. A case speaks of what
costs time only where the accelerator is starved, and only on what is known: unknown figures are
NaN, with which no comparison holds.
"""

from __future__ import annotations

from pipeprof.analyze.advice.findings import (
    cores,
    main_process,
    making,
    memory,
    order,
    reading,
    run,
    start,
    storage,
    transfer,
)
from pipeprof.analyze.advice.findings.case import Case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.model import Finding

CASES: tuple[Case, ...] = (
    cores.native_threads,
    cores.oversubscribed,
    cores.neighbours,
    cores.quota,
    storage.latency_bound,
    storage.bandwidth_bound,
    storage.client_bound,
    making.storage_wait,
    making.unseen_wait,
    making.decoding,
    making.computing,
    making.no_getitems,
    making.page_cache,
    reading.amplified,
    order.slow_batches,
    order.uneven_workers,
    transfer.many_tensors,
    transfer.no_tensors,
    transfer.in_memory_data,
    main_process.sampler,
    main_process.busy_main,
    main_process.pinning,
    main_process.pageable_copies,
    main_process.blocking_copies,
    start.start_up_each_epoch,
    start.slow_start,
    start.fork_with_clients,
    memory.shared_memory,
    memory.prefetched,
    memory.growth,
    memory.descriptors,
    run.too_few,
    run.lost,
)


def findings(facts: Facts) -> tuple[Finding, ...]:
    seen = (case(facts) for case in CASES)
    return tuple(finding for finding in seen if finding is not None)
