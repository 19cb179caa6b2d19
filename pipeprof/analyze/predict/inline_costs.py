"""Derive what a batch costs that main fetches itself, from runs without workers or with one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeprof.analyze.predict.batch_costs import BatchCosts
from pipeprof.analyze.predict.workload import Demand, Measured

_MOST_SHARED_MEMORY = 0.85
"""Largest share of ``default_collate`` in a worker that shared memory may account for. Without
shared memory the collation still takes 12 to 20 % of that time."""


def inline_demands(
    runs: Sequence[Measured],
    demands: tuple[Demand, ...],
    ones: Sequence[Measured],
    shared: bool = False,
) -> tuple[Demand, ...]:
    """Return the demands of batches that main fetches. Without ``runs`` of that kind they are
    estimated from ``demands`` and ``ones``. With ``shared``, main waits for the link, too."""
    if not runs:
        less_s, rest_s = _shared_memory_s(ones), _hand_out_s(ones)
        return tuple(
            Demand(
                latency_s=rest_s + each.pin_s + (0.0 if shared else each.link_bytes),
                link_bytes=each.link_bytes if shared else 0.0,
                cpu_s=max(0.0, each.cpu_s - less_s),
            )
            for each in demands
        )
    waits_s = np.concatenate([run.columns.wait_s - run.columns.made_s for run in runs])
    rest_s = max(0.0, float(np.nanmedian(waits_s)))
    costs = BatchCosts.of(runs).pooled_with(BatchCosts.of(ones))
    return tuple(
        Demand(latency_s=float(blocked) + rest_s, cpu_s=float(cpu))
        for blocked, cpu in zip(costs.blocked_s, costs.cpu_s, strict=True)
    )


def _shared_memory_s(runs: Sequence[Measured]) -> float:
    """Return the CPU time per batch that workers spend on shared memory and main would not. In a
    worker, torch's ``default_collate`` stacks tensors into new shared memory, which the kernel has
    to create and clear. It is part of the collation, and in the kernel. Other stages use the kernel
    too, and a collation may wait, so the CPU time of the collation is the limit where known."""
    kernel_s = np.concatenate([run.columns.system_s for run in runs])
    collate_s = np.concatenate([run.columns.collate_cpu_s for run in runs])
    if np.isnan(collate_s).all():
        collate_s = np.concatenate([run.columns.collate_s for run in runs])
    if np.isnan(kernel_s).all() or np.isnan(collate_s).all():
        return 0.0
    return float(min(np.nanmean(kernel_s), _MOST_SHARED_MEMORY * np.nanmean(collate_s)))


def _hand_out_s(runs: Sequence[Measured]) -> float:
    """Return the time that main takes to hand out a batch that is there. It is a low percentile,
    because with workers main also dispatches another batch meanwhile."""
    rest_s = np.concatenate([
        run.columns.delivered_s - np.fmax(run.columns.arrived_s, run.columns.pinned_s)
        for run in runs
    ])  # fmt: skip
    return max(0.0, float(np.nanpercentile(rest_s, 10))) if not np.isnan(rest_s).all() else 0.0
