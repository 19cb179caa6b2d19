"""Compare a sweep's two best settings by alternating short runs, in the order A B B A B A A B.

They end when they have decided, or have measured for as long as the trials of their data set did.
What each run takes to start comes on top, and the least number of batches where these are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pipeprof.analyze.sweep.pairs import paired
from pipeprof.model import PairedRuns, SweepSpec

_RUNS_PER_TRIAL = 4
"""How many runs of a pair take as long as one trial. A script always runs to its end."""
_MIN_PAIRS, _MAX_PAIRS = 4, 12
"""The number of pairs; the interval of fewer would be too wide."""

Setting = TypeVar("Setting")


def paired_spec(spec: SweepSpec) -> SweepSpec:
    """Return ``spec`` with the shorter times of a run in a pair."""
    if spec.script is not None:
        return spec
    trial_s, warmup_s = spec.trial_s / _RUNS_PER_TRIAL, spec.warmup_s / _RUNS_PER_TRIAL
    return replace(spec, trial_s=trial_s, warmup_s=warmup_s)


def pair_count(spec: SweepSpec, trials: int) -> int:
    """Return how many pairs may run after so many trials; 0 where they would be too few. The number
    is even, so that either setting is first equally often."""
    runs = trials if spec.script is not None else trials * _RUNS_PER_TRIAL
    pairs = min(_MAX_PAIRS, runs // 2) // 2 * 2
    return pairs if pairs >= _MIN_PAIRS else 0


def run_pairs(
    run: Callable[[Setting, int, int], float],
    trials: tuple[int, int],
    settings: tuple[Setting, Setting],
    pairs: int,
    until: Callable[[PairedRuns], bool],
) -> PairedRuns:
    """Run two settings in alternation and compare their samples/s.

    ``run`` returns the samples/s of a brief run. It is given the setting, the number of the run
    from 0, and how many runs there are at most. ``trials`` are the indices of the settings' trials.
    The runs end after ``pairs`` pairs, or earlier if ``until`` returns True for an even number.
    """
    samples_per_s: list[tuple[float, float]] = []
    for pair in range(pairs):
        order = (0, 1) if pair % 4 in (0, 3) else (1, 0)
        rates = {
            index: run(settings[index], 2 * pair + position, 2 * pairs)
            for position, index in enumerate(order)
        }
        samples_per_s.append((rates[0], rates[1]))
        count = pair + 1
        if count >= _MIN_PAIRS and count % 2 == 0 and until(paired(*trials, samples_per_s)):
            break
    return paired(*trials, samples_per_s)
