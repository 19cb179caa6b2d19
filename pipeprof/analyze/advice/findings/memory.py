"""Memory and descriptors: what is near its end."""

from __future__ import annotations

from math import nan

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.advice.roofline_estimate import most_prefetch
from pipeprof.analyze.thresholds import MANY_TENSORS

_FULL = 0.5
"""Of shared memory, by prefetched batches alone."""
_LARGE = 0.3
"""Of the RAM that is to be had, by prefetched batches alone."""
_POINTS, _MOST_POINTS = 6, 200
_RISING = 0.9
"""Of the pairs of points, the later is the higher."""
_RELEVANT_BYTES = 16e6
"""A worker's growth."""
_NEAR = 0.5
"""Of the limit of descriptors."""


def _under_way(facts: Facts) -> float:
    """Bytes of batches that are asked for, and the one in use; NaN unknown."""
    if not facts.workers:
        return nan
    return (facts.workers * facts.prefetch + 1) * facts.batch_bytes


def _fewer(facts: Facts) -> int | None:
    """The prefetch factor with which the batches under way fit; ``None``: the present one does."""
    most = most_prefetch(facts)
    return most if most < facts.prefetch else None


@case("shared-memory-too-small")
def shared_memory(facts: Facts) -> Figures | None:
    """The file system in which tensors travel is about to be full.

    Seen by batches under way against the size of `/dev/shm`: half of it or more. Cured by less
    prefetch, smaller batches, or more of it (`--shm-size`).
    """
    size, wanted = facts.main.shared_memory_bytes, _under_way(facts)
    if size is None or not wanted >= _FULL * size:
        return None
    return {"wanted": wanted, "fewer": _fewer(facts)}


@case("prefetch-memory")
def prefetched(facts: Facts) -> Figures | None:
    """Batches made ahead of need take a good part of the memory.

    Seen by batches under way, 30 % or more of the memory that is left. Cured by less prefetch or
    fewer workers.
    """
    free, wanted = facts.main.available_bytes, _under_way(facts)
    if free is None or not wanted >= _LARGE * free:
        return None
    return {"wanted": wanted, "fewer": _fewer(facts)}


@case("worker-memory-grows")
def growth(facts: Facts) -> Figures | None:
    """The workers' own memory grows as the run goes on.

    Seen by their private bytes over time: they rise in nearly every pair of looks, by 16 MB or more
    each. Cured by arrays instead of lists of Python objects, which forked workers copy as they
    touch them; else it is a leak.
    """
    slopes = [slope for points in _stretches(facts) if (slope := _slope(points)) is not None]
    if not slopes:
        return None
    per_s, grown, began = (float(value) for value in np.median(slopes, axis=0))
    free = facts.main.available_bytes
    return {
        "per_s": per_s,
        "grown": grown,
        "began": began,
        "lasts_s": free / (per_s * facts.workers) if free else None,
        "forked": facts.config.start_method == "fork",
    }


def _stretches(facts: Facts) -> list[np.ndarray]:
    """Of each worker, [moments, private bytes]; of its longest life when each epoch starts anew."""
    epochs, longest = facts.recording.epochs, None
    if len(epochs) > 1 and not facts.config.persistent_workers:
        longest = max(epochs, key=lambda epoch: epoch.wall_s)
    stretches = []
    for worker, points in facts.summary.memory.items():
        if worker >= 0:
            moments, sizes = np.array(points).T
            if longest is not None:
                end_s = longest.began_s + longest.wall_s
                own = (moments >= longest.began_s) & (moments <= end_s)
                moments, sizes = moments[own], sizes[own]
            stretches.append(np.stack([moments, sizes]))
    return stretches


def _slope(points: np.ndarray) -> tuple[float, float, float] | None:
    """Bytes/s, growth and first size, by the median of slopes between any two points (Theil and
    Sen); ``None`` where it is not clear that it grows. The first quarter is settling in."""
    points = points[:, np.isfinite(points).all(axis=0)]
    points = points[:, points.shape[1] // 4 :]
    points = points[:, :: max(1, -(-points.shape[1] // _MOST_POINTS))]
    moments, sizes = points
    if len(moments) < _POINTS or not (np.diff(moments) > 0).all():
        return None
    later, earlier = np.tril_indices(len(moments), -1)
    rises = (sizes[later] - sizes[earlier]) / (moments[later] - moments[earlier])
    per_s = float(np.median(rises))
    grown = per_s * float(moments[-1] - moments[0])
    if float((rises > 0).mean()) < _RISING or grown < _RELEVANT_BYTES:
        return None
    return per_s, grown, float(sizes[0])


@case("descriptors-near-limit")
def descriptors(facts: Facts) -> Figures | None:
    """Open files near what the system allows.

    Seen by descriptors against their limit: half of it or more. Each tensor of a batch takes one.
    Cured by a higher limit, fewer tensors, or torch's strategy `file_system`.
    """
    limit = facts.main.descriptor_limit
    worker = facts.summary.gauges["descriptors"].quantiles(1.0)[0]
    main = float(facts.main.descriptors or nan)
    most = np.fmax(main, worker)
    if not limit or not most >= _NEAR * limit:
        return None
    return {
        "most": most,
        "in_main": most == main,
        "share": most / limit,
        "several": facts.tensors > 1,
        "many": facts.tensors >= MANY_TENSORS,
        "by_descriptor": facts.main.sharing == "file_descriptor",
    }
