"""Read from a trace of `torch.profiler` what a GPU did while the host took and used batches.

The trace is the truth for `benchmarks.gpu_training`: it has the beginning and end of every kernel
and copy, by the driver's own records (CUPTI), on the host's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

NEXT = "next batch"
"""The annotation around each call that takes a batch."""
_ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}

Spans = npt.NDArray[np.float64]
"""Begin and end, of shape [spans, 2], in seconds."""


@dataclass(frozen=True)
class BatchTruth:
    """What happened from one call that takes a batch to the next one."""

    cycle_s: float
    idle_s: float
    """The device had no work."""
    starved_s: float
    """The device had no work while the host waited for the batch."""
    h2d_s: float
    """Copies from the host to the device were running."""


def truths(events: Iterable[Mapping[str, Any]]) -> list[BatchTruth]:
    """Return what the ``traceEvents`` of a trace show of each batch but the last."""
    takes, device, copies = [], [], []
    for event in events:
        kind, span = event.get("cat"), (event.get("ts", 0.0), event.get("dur", 0.0))
        if kind == "user_annotation" and event["name"] == NEXT:
            takes.append(span)
        elif kind in _ON_DEVICE:
            device.append(span)
            if "HtoD" in event["name"]:
                copies.append(span)
    waits, busy, copied = _spans(takes), merged(_spans(device)), merged(_spans(copies))
    found = []
    for (asked, delivered), (ended, _) in pairwise(waits):
        cycle_s, wait_s = ended - asked, delivered - asked
        found.append(
            BatchTruth(
                cycle_s,
                cycle_s - covered(busy, asked, ended),
                wait_s - covered(busy, asked, delivered),
                covered(copied, asked, ended),
            )
        )
    return found


def _spans(begins: Sequence[tuple[float, float]]) -> Spans:
    """Return spans from begins and durations in µs, in order."""
    spans = np.array(sorted(begins), dtype=float).reshape(-1, 2)
    return np.column_stack([spans[:, 0], spans.sum(axis=1)]) / 1e6


def merged(spans: Spans) -> Spans:
    """Return the union of ``spans``, which are in order of their begins."""
    if not len(spans):
        return spans
    ends = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > ends[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.column_stack([spans[first, 0], ends[last]])


def covered(union: Spans, begin: float, end: float) -> float:
    """Return how much of the time from ``begin`` to ``end`` lies in ``union``."""
    within = np.clip(union, begin, end)
    return float((within[:, 1] - within[:, 0]).sum())
