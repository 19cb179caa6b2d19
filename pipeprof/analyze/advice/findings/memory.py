"""Findings about memory and descriptors that run out."""

from __future__ import annotations

from math import nan

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import most_prefetch
from pipeprof.analyze.thresholds import MANY_TENSORS

_SHARED_MEMORY_SHARE = 0.5
"""Share of shared memory from which on prefetched batches are reported."""
_MEMORY_SHARE = 0.3
"""Share of the available memory from which on prefetched batches are reported."""
_LEAST_POINTS, _MOST_POINTS = 6, 200
"""Measurements of a worker's memory that are needed, and that are used."""
_RISING_SHARE = 0.9
"""Share of pairs of measurements of which the later must be the larger one."""
_LEAST_GROWTH = 16e6
"""Bytes by which a worker must grow to be reported."""
_DESCRIPTOR_SHARE = 0.5
"""Share of the limit from which on open descriptors are reported."""


def _prefetched_bytes(facts: Facts) -> float:
    """Return the bytes of the requested batches and of the one in use; NaN where unknown."""
    if not facts.workers:
        return nan
    return (facts.workers * facts.prefetch + 1) * facts.batch_bytes


def _smaller_prefetch(facts: Facts) -> int | None:
    """Return the prefetch factor whose batches fit; ``None`` where the present one does."""
    most = most_prefetch(facts)
    return most if most < facts.prefetch else None


@case("shared-memory-too-small")
def shared_memory(facts: Facts) -> Figures | None:
    """The shared memory through which workers send tensors is nearly full.

    Reported when prefetched batches can take 50 % or more of `/dev/shm`.

    Fix: prefetch less, use smaller batches, or enlarge `/dev/shm` (`--shm-size`).
    """
    size, wanted = facts.main.shared_memory_bytes, _prefetched_bytes(facts)
    if size is None or not wanted >= _SHARED_MEMORY_SHARE * size:
        return None
    return {"wanted": wanted, "fewer": _smaller_prefetch(facts)}


@case("prefetch-memory")
def prefetched(facts: Facts) -> Figures | None:
    """Prefetched batches take a large part of the memory.

    Reported when they can take 30 % or more of the available memory.

    Fix: prefetch less, or use fewer workers.
    """
    free, wanted = facts.main.available_bytes, _prefetched_bytes(facts)
    if free is None or not wanted >= _MEMORY_SHARE * free:
        return None
    return {"wanted": wanted, "fewer": _smaller_prefetch(facts)}


@case("worker-memory-grows")
def growth(facts: Facts) -> Figures | None:
    """The workers' private memory grows during the run.

    Reported when it grows by 16 MB or more per worker, and the later of two measurements is the
    larger one in 90 % of all pairs.

    Fix: keep samples in arrays instead of lists of Python objects, which forked workers copy when
    they touch them. If memory still grows, it is a leak.
    """
    growths = [each for points in _memory_series(facts) if (each := _growth(points)) is not None]
    if not growths:
        return None
    per_s, grown, began = (float(value) for value in np.median(growths, axis=0))
    free = facts.main.available_bytes
    return {
        "per_s": per_s,
        "grown": grown,
        "began": began,
        "lasts_s": free / (per_s * facts.workers) if free else None,
        "forked": facts.config.start_method == "fork",
    }


def _memory_series(facts: Facts) -> list[np.ndarray]:
    """Return per worker an array of shape (2, n): times in seconds, and private bytes. Where each
    epoch starts new workers, only the longest epoch counts."""
    epochs, longest = facts.recording.epochs, None
    if len(epochs) > 1 and not facts.config.persistent_workers:
        longest = max(epochs, key=lambda epoch: epoch.wall_s)
    series = []
    for worker, points in facts.summary.memory.items():
        if worker >= 0:
            times_s, sizes = np.array(points).T
            if longest is not None:
                end_s = longest.began_s + longest.wall_s
                own = (times_s >= longest.began_s) & (times_s <= end_s)
                times_s, sizes = times_s[own], sizes[own]
            series.append(np.stack([times_s, sizes]))
    return series


def _growth(points: np.ndarray) -> tuple[float, float, float] | None:
    """Return growth in bytes/s, growth in bytes and first size; ``None`` without clear growth. The
    rate is the median slope between any two points (Theil and Sen). The first quarter of the points
    is start-up, and left out."""
    points = points[:, np.isfinite(points).all(axis=0)]
    points = points[:, points.shape[1] // 4 :]
    points = points[:, :: max(1, -(-points.shape[1] // _MOST_POINTS))]
    times_s, sizes = points
    if len(times_s) < _LEAST_POINTS or not (np.diff(times_s) > 0).all():
        return None
    later, earlier = np.tril_indices(len(times_s), -1)
    slopes = (sizes[later] - sizes[earlier]) / (times_s[later] - times_s[earlier])
    per_s = float(np.median(slopes))
    grown = per_s * float(times_s[-1] - times_s[0])
    if float((slopes > 0).mean()) < _RISING_SHARE or grown < _LEAST_GROWTH:
        return None
    return per_s, grown, float(sizes[0])


@case("descriptors-near-limit")
def descriptors(facts: Facts) -> Figures | None:
    """Nearly as many files are open as the system allows.

    Reported when a process has 50 % or more of its limit of descriptors open. Each tensor of a
    batch takes one.

    Fix: raise the limit, send fewer tensors, or use torch's sharing strategy `file_system`.
    """
    limit = facts.main.descriptor_limit
    worker = facts.summary.gauges["descriptors"].quantiles(1.0)[0]
    main = float(facts.main.descriptors or nan)
    most = np.fmax(main, worker)
    if not limit or not most >= _DESCRIPTOR_SHARE * limit:
        return None
    return {
        "most": most,
        "in_main": most == main,
        "share": most / limit,
        "several": facts.tensors > 1,
        "many": facts.tensors >= MANY_TENSORS,
        "by_descriptor": facts.main.sharing == "file_descriptor",
    }
