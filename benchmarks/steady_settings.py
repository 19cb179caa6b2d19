"""How much slower one setting of a loader is than another: alternate runs of the steady state."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp, log, sqrt

import numpy as np

from benchmarks.random_loader_runs import plain_rate
from benchmarks.random_loader_surroundings import Surroundings
from benchmarks.random_loaders import LoaderSpec
from pipeprof.analyze.predict.workload import Setting
from pipeprof.analyze.profile.intervals import student_t

GRID = tuple(
    Setting(workers, prefetch)
    for workers in (1, 2, 3, 4, 6) for prefetch in (2, 4)
)  # fmt: skip
NO_WORKERS = Setting(0, 2)
BEHIND = 0.03
"""A setting that is at most so much slower than the best one is as good."""
_PAIRS, _MOST_PAIRS = 4, 12
"""Runs of each of two settings that are compared; and at most, where 3 % is to be decided."""
_WIDER_99 = 2.58 / 1.96
"""How much wider an interval of 99 % is than one of 95 %, of a normal distribution."""


def middle(logs: Sequence[float]) -> float:
    """Return the median of log ratios, as a ratio less 1."""
    return exp(float(np.median(logs))) - 1


def is_within(logs: Sequence[float]) -> bool | None:
    """Return whether the interval of 95 % of these log ratios' mean is at most `BEHIND`, or above
    it. `compared` looks at it after each pair, so it is wrong a little more often than that."""
    low, high = interval_of(logs, wider=1.0)
    return True if high <= BEHIND else False if low > BEHIND else None


def interval_of(logs: Sequence[float], wider: float = _WIDER_99) -> tuple[float, float]:
    """Return 99 % of the mean of log ratios, as ratios less 1; 95 % where it is not ``wider``."""
    mean, half = float(np.mean(logs)), np.inf
    if len(logs) > 1:
        half = wider * student_t(len(logs) - 1) * float(np.std(logs, ddof=1)) / sqrt(len(logs))
    return exp(mean - half) - 1, exp(mean + half) - 1


def grid(spec: LoaderSpec) -> Sequence[Setting]:
    settings = GRID if spec.num_workers else (*GRID, NO_WORKERS)
    return random.Random(spec.seed).sample(settings, len(settings))


def steady(
    spec: LoaderSpec, setting: Setting, around: Surroundings, turn: int, seconds: float
) -> float:
    workers, prefetch = setting.num_workers, setting.prefetch_factor
    changed = replace(spec, num_workers=workers, prefetch_factor=prefetch)
    return plain_rate(changed, around, turn, seconds)


def paired(
    spec: LoaderSpec, one: Setting, best: Setting, around: Surroundings, turns: Iterator[int],
    decide: bool,
) -> tuple[float, ...]:  # fmt: skip
    """Return by how much ``one`` is slower than ``best``, as log ratios."""
    if one == best or (not one.num_workers and not best.num_workers):
        return (0.0, 0.0)
    return compared(spec, one, best, around, turns, decide)


def compared(
    spec: LoaderSpec, one: Setting, other: Setting, around: Surroundings, turns: Iterator[int],
    decide: bool = False,
) -> tuple[float, ...]:  # fmt: skip
    """Return by how much ``one`` is slower than ``other`` in alternate runs, as log ratios. To
    ``decide`` `BEHIND`, there are as many runs as that takes."""
    found: list[float] = []
    for pair in range(_MOST_PAIRS if decide else _PAIRS):
        if pair >= _PAIRS and is_within(found) is not None:
            break
        turn = next(turns)
        rates = {}
        for is_other in (False, True) if pair % 2 else (True, False):
            rates[is_other] = steady(spec, other if is_other else one, around, turn, 2.0)
        found.append(log(rates[True] / rates[False]))
    return tuple(found)
