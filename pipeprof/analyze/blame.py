"""Each second of stall, charged to what the awaited batch was doing in it.

A batch's way is laid out on the time line: it is taken up, read, decoded, transformed and
collated, transferred until it is unpickled in main, pinned, and handed out. Whatever part of the
way lies in a stall is charged, so the charges add up to the stall, exactly.

- Before a worker takes the task up, it is on its way to the worker: `transfer`.
- Read, decode, transform and the rest of fetch follow one another when each happens once in the
  batch. When they take turns, as sample by sample, each has its share of any part of fetch.
- What main does itself is ``sampler`` while it picks the next indices, and else ``main``. Without
  workers all that comes before fetch is ``sampler``.
"""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.columns import Columns, Floats
from pipeprof.model import Stage

UNKNOWN, SAMPLER, MAIN = "unknown", "sampler", "main"


def charge(columns: Columns) -> dict[str, Floats]:
    """Per batch, the seconds of its stall charged to each cause."""
    known = np.isfinite(columns.fetch_start_s)
    stall = columns.stall_s
    start = columns.delivered_s - stall
    charges = {UNKNOWN: np.where(known, 0.0, stall)}
    line = _Line(np.where(known, start, columns.delivered_s), columns.delivered_s)

    inline = columns.worker < 0
    before = line.until(columns.fetch_start_s)
    charges[str(Stage.TRANSFER)] = np.where(inline, 0.0, before)
    picking = np.where(inline, before, 0.0)
    for stage, seconds in _fetch(columns, line).items():
        charges[str(stage)] = seconds
    charges[str(Stage.COLLATE)] = line.until(columns.fetch_end_s)
    charges[str(Stage.TRANSFER)] += line.until(_or(columns.arrived_s, columns.fetch_end_s))
    charges[str(Stage.PIN)] = line.until(columns.pinned_s)
    rest = line.until(columns.delivered_s)
    picked = np.minimum(rest, np.nan_to_num(columns.sampler_s))
    charges[SAMPLER] = picking + picked
    charges[MAIN] = rest - picked
    return charges


def ranked(charges: dict[str, float]) -> dict[str, float]:
    """Largest first; what took nothing is left out."""
    ordered = sorted(charges.items(), key=lambda item: -item[1])
    return {name: seconds for name, seconds in ordered if seconds > 0}


class _Line:
    """Walks along each batch's stall, from its start to its delivery."""

    def __init__(self, start: Floats, end: Floats) -> None:
        self._at, self._end = start, end

    def until(self, moment: Floats) -> Floats:
        """Seconds of stall between where we are and ``moment``; none where that is unknown."""
        reached = np.fmax(self._at, np.fmin(moment, self._end))
        reached = np.where(np.isnan(moment), self._at, reached)
        passed: Floats = reached - self._at
        self._at = reached
        return passed


def _fetch(columns: Columns, line: _Line) -> dict[Stage, Floats]:
    parts = {
        Stage.READ: columns.read_s, Stage.DECODE: columns.decode_s,
        Stage.TRANSFORM: columns.transform_s,
    }  # fmt: skip
    end = columns.fetch_end_s - columns.collate_s
    seen = sum((part > 0).astype(float) for part in parts.values())
    by_turns = columns.turns > seen
    # a line of its own for each manner: the other manner's batches end where they begin
    start = line._at
    in_order = _Line(start, np.where(by_turns, start, line._end))
    charges, moment = {}, columns.fetch_start_s
    for stage, seconds in parts.items():
        moment = moment + seconds
        charges[stage] = in_order.until(np.fmin(moment, end))
    charges[Stage.FETCH] = in_order.until(end)

    whole = line.until(end)
    fetch_s = np.fmax(end - columns.fetch_start_s, 1e-12)
    shares = {stage: np.nan_to_num(seconds / fetch_s) for stage, seconds in parts.items()}
    shares[Stage.FETCH] = np.fmax(0.0, 1 - sum(shares.values()))
    total = np.fmax(sum(shares.values()), 1e-12)
    for stage, share in shares.items():
        charges[stage] = np.where(by_turns, whole * share / total, charges[stage])
    return charges


def _or(moment: Floats, otherwise: Floats) -> Floats:
    return np.where(np.isnan(moment), otherwise, moment)
