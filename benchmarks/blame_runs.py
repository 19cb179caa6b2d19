"""Runs loaders drawn at random, alternately with all their costs and with some of them cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.core_use import CoreClocks
from benchmarks.random_loader_runs import FEWEST, rate, run, starved
from benchmarks.random_loader_surroundings import surroundings
from benchmarks.random_loaders import Cost, LoaderSpec
from pipeprof.model import Recording
from pipeprof.sweep.trial import any_workers

CHEAPER = 0.75
"""Share of a cost that is left by a cut."""
_STEADY, _MOST = 0.01, 5
"""Standard error of the gains above which turns are added, and up to how many times as many."""
_LONGER = 3
"""How many times as long a loader runs that reads from a disk: the kernel keeps to a rate in the
mean of half a second or so, not from read to read."""

Cut = tuple[Cost, ...]
"""The costs that are cut together."""


@dataclass(frozen=True)
class Turn:
    """Consecutive runs over the same batches: one with all costs, and one for each cut."""

    base: Recording
    cuts: dict[Cut, Recording]

    def gain(self, cut: Cut) -> float:
        """Return the factor by which the cut raises the throughput."""
        return rate(self.cuts[cut]) / rate(self.base)


@dataclass(frozen=True)
class Tried:
    """One loader's runs."""

    spec: LoaderSpec
    turns: tuple[Turn, ...]
    others: float | None = None
    """Share of all cores, 0..1, that other processes used during the runs."""


def cuts_of(spec: LoaderSpec) -> dict[str, Cut]:
    """Return cause → all costs that belong to it. They are cut together to measure its effect."""
    return {cause: spec.costs_of(cause) for cause in spec.causes}


def try_out(spec: LoaderSpec, turns: int, seconds: float, threshold: float) -> Tried | None:
    """Run a loader and its cuts, for about ``seconds`` each, with more than ``turns`` turns where
    gains differ much between turns. Return ``None`` if it is starved by less than ``threshold``."""
    cuts = list(dict.fromkeys(cuts_of(spec).values()))
    if any(cost.kind == "disk" for cost in spec.costs):
        seconds *= _LONGER
    found: list[Turn] = []
    before = CoreClocks.read()
    with surroundings([spec]) as around, any_workers():
        first = run(spec, around, 0, seconds / 2)
        if starved(first) < threshold:
            return None
        # each run has equally many batches, so that runs with a cut read the same ones
        batches = max(FEWEST, round(rate(first) * seconds))
        while len(found) < turns or (len(found) < _MOST * turns and _is_unsteady(found)):
            turn = len(found) + 1
            # reversed in every other turn, so that a drift of the machine affects all arms alike
            arms: list[Cut] = [(), *cuts][:: 1 if turn % 2 else -1]
            made = {cut: run(spec.cut(cut, CHEAPER), around, turn, batches=batches) for cut in arms}
            found.append(Turn(made.pop(()), made))
    return Tried(spec, tuple(found), CoreClocks.read().others_since(before))


def _is_unsteady(turns: Sequence[Turn]) -> bool:
    return standard_error([[turn.gain(cut) for turn in turns] for cut in turns[0].cuts]) > _STEADY


def standard_error(gains: Sequence[Sequence[float]]) -> float:
    """Return the standard error of a cut's mean gain, as a share of the throughput; NaN with one
    turn. ``gains``: by cut and turn, all of one loader. Its cuts are assumed to vary equally."""
    logs = np.log(np.array(gains))
    cuts, turns = logs.shape
    freedom = cuts * (turns - 1)
    if not freedom:
        return float("nan")
    squares = float(((logs - logs.mean(axis=1, keepdims=True)) ** 2).sum())
    return float(np.sqrt(squares / freedom / turns))
