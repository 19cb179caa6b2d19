"""Which batches are watched, where to watch all of them would cost too much.

Hooks cost some 50 to 100 µs a batch in all processes together: nothing to a batch of 20 ms, and
several per cent of one of 1 ms. So of a loader as fast as that, once its beginning has been watched
whole, one stretch of batches is watched of every so many; between stretches the hooks are taken
off. What is watched is watched whole, so every figure is as without this, of fewer batches.
"""

from __future__ import annotations

import numpy as np

from pipeprof.measure.rows import COLUMNS, Floats

FIRST = 1024
"""Batches that are watched whole, before anything is known of a loader."""
STRETCH = 256
"""Batches, by their task: main and the workers know it without telling each other."""
PAGE = 64
"""A worker looks so often, in batches, whether it is to watch."""
_COST_S = 80e-6
"""Of the hooks, all processes together, where batches drive them out of the caches; the slowest
machine of `python -m benchmarks.overhead`."""
_SHARE = 0.003
"""Of the time that they may cost."""
_RAREST = 64

_ASKED, _DONE, _TURNS, _REQUESTS = (
    COLUMNS.index(name) for name in ("asked_s", "done_s", "turns", "requests")
)


def watched(task: int, every: int) -> bool:
    """Whether the batch lies in a stretch that is watched, of ``every`` so many. 0 and 1: all."""
    return every <= 1 or task // STRETCH % every == 0


def next_watched(task: int, every: int) -> int:
    """The task at which the next stretch begins that is watched."""
    return (task // (STRETCH * every) + 1) * STRETCH * every


def how_many(rows: Floats) -> int:
    """Of how many stretches one is to be watched, by ``rows`` of batches in a row. All of them
    where a data set says what it does: its figures are counted to the byte."""
    if np.nansum(rows[:, _TURNS]) or np.nansum(rows[:, _REQUESTS]):
        return 1
    return how_many_at(float(np.median(rows[:, _DONE] - rows[:, _ASKED])))


def how_many_at(turn_s: float) -> int:
    """Of how many stretches one is to be watched, where a batch takes so long in turn."""
    return int(np.clip(_COST_S / (_SHARE * max(turn_s, 1e-6)), 1, _RAREST))
