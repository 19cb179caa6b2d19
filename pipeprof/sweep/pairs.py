"""A sweep's best setting and the next, once more: short runs by turns, A B B A B A A B.

They take half as long as the trials of their data set did, however close the two are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pipeprof.analyze.sweep.pairs import paired
from pipeprof.model import PairedRuns, SweepSpec

_LENGTH = 4
"""Such a run is so many times shorter than a trial. One of a script is as long as that takes."""
_FEWEST, _MOST = 4, 12
"""Pairs: of fewer the interval would be too wide to tell anything."""
_SHARE = 0.5
"""Of the time that the trials took."""

Setting = TypeVar("Setting")


def shorter(spec: SweepSpec) -> SweepSpec:
    """Of a run in a pair."""
    if spec.script is not None:
        return spec
    return replace(spec, trial_s=spec.trial_s / _LENGTH, warmup_s=spec.warmup_s / _LENGTH)


def how_many(spec: SweepSpec, trials: int) -> int:
    """Pairs that may be run after so many trials: an even number, so that either setting is first
    as often; 0 where they would be too few."""
    length = 1 if spec.script is not None else _LENGTH
    pairs = min(_MOST, int(_SHARE * trials * length / 2)) // 2 * 2
    return pairs if pairs >= _FEWEST else 0


def run_pairs(
    run: Callable[[Setting, int, int], float],
    trials: tuple[int, int],
    settings: tuple[Setting, Setting],
    pairs: int,
) -> PairedRuns:
    """``run``: for a short while, samples/s; given the setting, which run it is, from 0, and of how
    many. ``trials``: the index of each of ``settings`` in the sweep's. Raises what ``run`` does."""
    found = []
    for pair in range(pairs):
        turns = (0, 1) if pair % 4 in (0, 3) else (1, 0)
        rates = {
            which: run(settings[which], 2 * pair + turn, 2 * pairs)
            for turn, which in enumerate(turns)
        }
        found.append((rates[0], rates[1]))
    return paired(*trials, found)
