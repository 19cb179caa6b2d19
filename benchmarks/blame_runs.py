"""Loaders drawn at random are run whole and with some of their costs cut, in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.core_use import CoreClocks
from benchmarks.random_loader_runs import FEWEST, rate, run, starved
from benchmarks.random_loader_work import surroundings
from benchmarks.random_loaders import Cost, LoaderSpec
from pipeprof.model import Recording
from pipeprof.sweep.trial import any_workers

CHEAPER = 0.75
"""Of a cost, what a cut leaves."""
_STEADY, _MOST = 0.015, 2
"""Where gains are known worse than that, there are up to so many times as many turns."""

Cut = tuple[Cost, ...]
"""The costs that are cut together."""


@dataclass(frozen=True)
class Turn:
    """Runs one after another, each over the same batches but for what was cut."""

    base: Recording
    cuts: dict[Cut, Recording]

    def gain(self, cut: Cut) -> float:
        """By what factor the cut makes it faster."""
        return rate(self.cuts[cut]) / rate(self.base)


@dataclass(frozen=True)
class Tried:
    """One loader's runs."""

    spec: LoaderSpec
    turns: tuple[Turn, ...]
    others: float | None = None
    """0..1 of all cores that other processes have had meanwhile."""


def cuts_of(spec: LoaderSpec) -> dict[str, Cut]:
    """Cause → what is cut to find out what it is worth: all costs that belong to it."""
    return {cause: spec.costs_of(cause) for cause in spec.causes}


def try_out(spec: LoaderSpec, turns: int, seconds: float, threshold: float) -> Tried | None:
    """``None``: it is not starved by so much. Each run takes about so many seconds. Where gains
    differ much from turn to turn, there are more turns."""
    cuts = list(dict.fromkeys(cuts_of(spec).values()))
    found: list[Turn] = []
    before = CoreClocks.read()
    with surroundings([spec]) as around, any_workers():
        first = run(spec, around, 0, seconds / 2)
        if starved(first) < threshold:
            return None
        # as many batches in each run, so that a cut one has the same
        batches = max(FEWEST, round(rate(first) * seconds))
        while len(found) < turns or (len(found) < _MOST * turns and _is_unsteady(found)):
            turn = len(found) + 1
            # backwards in every other turn: a drift of the machine befalls each arm alike
            arms: list[Cut] = [(), *cuts][:: 1 if turn % 2 else -1]
            made = {cut: run(spec.cut(cut, CHEAPER), around, turn, batches=batches) for cut in arms}
            found.append(Turn(made.pop(()), made))
    return Tried(spec, tuple(found), CoreClocks.read().others_since(before))


def _is_unsteady(turns: Sequence[Turn]) -> bool:
    return standard_error([[turn.gain(cut) for turn in turns] for cut in turns[0].cuts]) > _STEADY


def standard_error(gains: Sequence[Sequence[float]]) -> float:
    """Of a cut's mean gain, as a share of the throughput. ``gains``: by cut and turn, all of one
    loader, whose cuts are taken to vary alike; NaN with one turn."""
    logs = np.log(np.array(gains))
    cuts, turns = logs.shape
    freedom = cuts * (turns - 1)
    if not freedom:
        return float("nan")
    squares = float(((logs - logs.mean(axis=1, keepdims=True)) ** 2).sum())
    return float(np.sqrt(squares / freedom / turns))
