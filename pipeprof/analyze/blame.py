"""Each second of stall, charged to what the awaited batch was doing in it.

A batch's way is laid out on the time line: fetch begins, then read, decode, transform, the rest
of fetch and collate follow end to end until fetch ends, then transfer until it arrives in main,
then reorder until it is delivered. A stall is the stretch from asked to delivered; whatever part
of the way lies in it is charged. What lies before fetch began is the task on its way to the
worker, and is charged to transfer. So the charges add up to the stall, exactly.

The order inside fetch is exact when a batch reads once, decodes once and transforms once, and an
approximation when it does so by turns.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.model import Stage

UNKNOWN = "unknown"


def blame(columns: Columns) -> dict[str, float]:
    """Seconds of stall per stage, largest first; sums to the stall."""
    known = np.isfinite(columns.fetch_start_s)
    charges = {UNKNOWN: float(columns.wait_s[~known].sum())}
    seen = columns.take(known)
    edge = np.maximum(seen.asked_s, np.minimum(seen.fetch_start_s, seen.delivered_s))
    charges[str(Stage.TRANSFER)] = float((edge - seen.asked_s).sum())
    for stage, end in _way(seen):
        reached = np.maximum(edge, np.minimum(end, seen.delivered_s))
        name = str(stage)
        charges[name] = charges.get(name, 0.0) + float((reached - edge).sum())
        edge = reached
    ranked = sorted(charges.items(), key=lambda item: -item[1])
    return {name: seconds for name, seconds in ranked if seconds > 0}


def _way(columns: Columns) -> list[tuple[Stage, Floats]]:
    """(stage, moment of its end), in order; the last ends at delivery."""
    read_end = columns.fetch_start_s + columns.read_s
    decode_end = read_end + columns.decode_s
    transform_end = decode_end + columns.transform_s
    collate_start = columns.fetch_end_s - columns.collate_s
    arrived = np.where(np.isnan(columns.arrived_s), columns.fetch_end_s, columns.arrived_s)
    return [
        (Stage.READ, read_end),
        (Stage.DECODE, decode_end),
        (Stage.TRANSFORM, transform_end),
        (Stage.FETCH, collate_start),
        (Stage.COLLATE, columns.fetch_end_s),
        (Stage.TRANSFER, arrived),
        (Stage.REORDER, columns.delivered_s),
    ]
