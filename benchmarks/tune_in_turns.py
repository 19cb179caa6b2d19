"""Two epochs of training in turns, so that what slows down the machine slows down both.

The epoch that waits is paused (`pipeprof.pause`). Its workers fill their buffers before the other
one's turn begins. When its own turn comes again, these batches count neither as batches nor as
time, for they were fetched while nobody trained. What the search took meanwhile counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log
from time import perf_counter
from typing import Any

import pipeprof
from pipeprof.loaders.tune.tuned_epoch import TunedEpoch
from pipeprof.measure.accelerator import EmulatedAccelerator

TURN_S = 3.0
_LEAST_BATCHES = 5
"""A turn takes longer until it counts so many, beside those that were fetched before."""
_LEAST_TURNS = 12
"""A turn takes less time where an epoch would have fewer turns."""


@dataclass
class Epoch:
    """One of the two epochs."""

    loader: Any
    batches: Iterator[Any] = field(init=False)
    ended: bool = False
    counted: int = 0
    """Batches in all turns."""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.batches = iter(self.loader)

    @property
    def buffered(self) -> int:
        """Batches that its workers fetch while it waits, of the setting that is in use then."""
        if isinstance(self.batches, TunedEpoch):
            carried = self.batches._carried
            return int(carried.current.setting.outstanding) if carried is not None else 0
        return int(self.loader.num_workers * (self.loader.prefetch_factor or 0))

    def turn(self, accelerator: EmulatedAccelerator) -> float | None:
        """Train for some seconds. Return batches a second; ``None`` where the epoch ends within
        the turn."""
        rested = self.buffered + 1
        begin_s, counted, seconds = perf_counter(), 0, 0.0
        most = max(_LEAST_BATCHES, len(self.loader) // _LEAST_TURNS)
        while counted < _LEAST_BATCHES or (perf_counter() < begin_s + TURN_S and counted < most):
            asked_s = perf_counter()
            try:
                batch = next(self.batches)
            except StopIteration:
                self.ended = True
                break
            step_s = perf_counter()
            accelerator.step(batch)
            done_s = perf_counter()
            if rested:
                rested -= 1
                seconds += step_s - asked_s
            else:
                counted += 1
                seconds += done_s - asked_s
        self.counted += counted
        self.seconds += seconds
        return None if self.ended else counted / seconds

    def fill(self) -> None:
        """Wait until its workers have started and its buffers are full."""
        wanted_s = 1.5 * self.buffered * self.seconds / self.counted if self.counted else TURN_S
        time.sleep(min(TURN_S, wanted_s))


def in_turns(
    tuned: Any, plainly: Any, accelerator: EmulatedAccelerator
) -> tuple[tuple[float, ...], float]:
    """Train both epochs until one ends. Return the log ratio of the rates of each pair of turns,
    and the seconds that the own setting takes for a whole epoch."""
    one, other = Epoch(tuned), Epoch(plainly)
    one.fill()
    logs: list[float] = []
    mine = theirs = None
    while not (one.ended or other.ended):
        for epoch in (one, other) if len(logs) % 2 else (other, one):
            if epoch is one:
                mine = one.turn(accelerator)
            with pipeprof.pause("the other epoch"):
                if epoch is other:
                    theirs = other.turn(accelerator)
                epoch.fill()
        if mine is not None and theirs is not None:
            logs.append(log(mine / theirs))
    return tuple(logs), len(plainly) * other.seconds / other.counted
