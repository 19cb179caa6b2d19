"""Choose which batches are recorded in full, where recording all of them would cost too much.

The hooks take about 70 µs per batch, summed over all processes. That is nothing for a batch of
20 ms, and several per cent of one of 1 ms. So batches are recorded in windows, as many as a small
share of the run's time pays for. The first window starts with the first batch. All batches outside
the windows are only timed, in the main process.
"""

from __future__ import annotations

import math
from typing import Any

from pipeprof.loaders.instrument.inline_observer import InlineObserver, Observer
from pipeprof.loaders.instrument.worker_observer import WorkerObserver
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.measure.ring import Ring
from pipeprof.units import format_share

ALL_TASKS = 1 << 40
"""The end of a window that never ends: more tasks than any run has."""
CHECK_EVERY = 64
"""Fewest batches after which main checks again whether it can afford a window."""
LONGEST = 256
"""Most batches of a window, unless a loader needs longer ones, and most between two checks."""
_SHORTEST = 16
_SHORTEST_CYCLE_S = 1e-6
COST_S = 70e-6
"""CPU seconds to record a batch in all processes together, when batches evict the hooks from the
caches; measured by `python -m benchmarks.overhead`."""
DEVICE_COST_S = 50e-6
"""The same in addition where the events of a device are recorded; measured by `make gpu-check`."""
INLINE_COST_S = 20e-6
"""The same in a loader without workers, where there is no hand-over to observe."""
_SHARE = 0.002
"""Share of the run's time that recording may cost."""
_SPENT_BY_RANKS = 0.8
"""Share of the budget that ranks spend, so that it always pays for the next of their windows."""
_LATE = 4
"""How many tasks later than another rank's a window of a rank may begin."""
_MOST_SAVED = 2 * LONGEST
"""Most batches that the budget saves up, for example during a validation."""


def shortest_window(capacity: int) -> int:
    """Return the fewest batches of a window, for a loader that prefetches ``capacity`` batches. At
    both ends of a window it is unknown what the workers did before and after."""
    return max(_SHORTEST, 2 * capacity + _SHORTEST // 2)


def recorded_per_s(cost_s: float) -> float:
    """Return how many batches a second may be recorded in the long run, at ``cost_s`` each."""
    return _SHARE / cost_s


def window_of_ranks(task: int, per_batch: float, least: int) -> tuple[int, int]:
    """Return the first task, from ``task`` on, and the length of the next window of a rank.

    The ranks of a job make the same step at the same time, but a budget is never spent at the same
    step by two of them. So their windows begin at multiples of a period, a power of two. Where two
    ranks have different ones, the windows of the longer period are among those of the shorter.

    Args:
        task: The first task that a window may begin with.
        per_batch: The batches that may be recorded for each one that is delivered, below 1.
        least: The fewest batches of a window.
    """
    income = _SPENT_BY_RANKS * per_batch
    period = 1 << max(0, math.ceil(math.log2(least / income)))
    late = task % period
    first = task if late <= _LATE else task + period - late
    return first, max(least, int(period * income))


def sampling_note(batches: int, only_timed: int) -> tuple[str, ...]:
    """Return a note for the profile on batches that were only timed; none if there are none."""
    if not only_timed:
        return ()
    note = (
        f"Of {batches:,} batches {format_share(1 - only_timed / batches)} were recorded in full, "
        "in windows; the others were only timed. They come so fast that recording them all would "
        "cost some per cent. pipeprof.wrap(loader, whole=True), or pipeprof run --whole, "
        "records all."
    )
    return (note,)


class SamplingBudget:
    """A token bucket: how many batches may be recorded now."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._now, self._since = clock.now, clock.now()
        self._tokens: float | None = None
        self._recorded = 0

    @property
    def is_new(self) -> bool:
        """Whether nothing was taken from it yet."""
        return self._tokens is None

    def begin(self, count: int, cost_s: float = COST_S) -> bool:
        """Take ``count`` batches at the start of a pass if possible; the first pass always can."""
        if self._tokens is None:
            self._tokens = float(count)
        return self.take(count, cost_s)

    def take(self, count: int, cost_s: float = COST_S) -> bool:
        """Take ``count`` batches from the budget, which cost ``cost_s`` each; return False if it
        has fewer."""
        now = self._now()
        gained = (now - self._since) * recorded_per_s(cost_s)
        self._tokens, self._since = min(_MOST_SAVED, (self._tokens or 0.0) + gained), now
        if self._tokens < count:
            return False
        self._tokens -= count
        self._recorded += count
        return True

    def seconds_until(self, count: int, cost_s: float = COST_S) -> float:
        """Return in how many seconds after the last `take` it will have ``count`` batches."""
        return (count - (self._tokens or 0.0)) / recorded_per_s(cost_s)

    def give_back(self, count: int) -> None:
        """Return ``count`` batches that were taken and not recorded."""
        self._tokens = (self._tokens or 0.0) + count
        self._recorded -= count

    def next_length(self, least: int) -> int:
        """Return the length of the next window, which grows with the run. Longer windows have fewer
        ends, where records are incomplete."""
        return max(least, min(LONGEST, self._recorded // 2))


class SamplingSchedule:
    """Decides for all passes over one loader which batches are recorded in full. The ring tells the
    workers the current or the next window, as a range of tasks. With ``whole`` all batches are
    recorded, whatever that costs."""

    def __init__(self, whole: bool = False, clock: Clock = SYSTEM_CLOCK) -> None:
        self.is_rank = False
        """Whether other ranks make the same steps, and are to record the same batches."""
        self._whole, self._now = whole, clock.now
        self._checked: tuple[float, int] | None = None
        """When the last check was, and after how many batches of the pass."""
        self._cycle_s = math.inf
        """Mean time of a batch before that check, in seconds."""
        self._budget = SamplingBudget(clock)
        self._taken = 0
        """Batches that the pass that began last took from the budget."""
        self._device_s = 0.0

    def begin_pass(self, ring: Ring, capacity: int) -> None:
        """Set the first window of a pass, before its workers fetch any batch. ``capacity`` is the
        number of batches that the workers prefetch."""
        length = shortest_window(capacity)
        self._taken, self._checked = 0, None
        if self._whole:
            length = ALL_TASKS
        elif self._budget.begin(length, self._cost_s):
            self._taken = length
        else:
            length = 0
        ring.set_window(0, length)

    def undo_begin(self) -> None:
        """Undo `begin_pass`, as nothing was recorded."""
        self._budget.give_back(self._taken)
        self._taken = 0

    def add_device(self) -> None:
        """Allow for the events of a device, from the next check on."""
        self._device_s = DEVICE_COST_S

    @property
    def _cost_s(self) -> float:
        return COST_S + self._device_s

    @property
    def _inline_cost_s(self) -> float:
        return INLINE_COST_S + self._device_s

    def start(self, observer: Observer, iterator: Any) -> bool:
        """Return whether the first batch of a pass is recorded, and set the hooks accordingly."""
        if isinstance(observer, InlineObserver):
            return self._check_inline(observer, 0)[0]
        if not isinstance(observer, WorkerObserver) or not observer.may_pause:
            return True
        # a loader may continue with an iterator that has delivered batches before
        recorded: bool = observer.ring.window()[1] > iterator._rcvd_idx
        observer.set_active(recorded)
        return recorded

    def check(
        self, observer: Observer, iterator: Any, recorded: bool, delivered: int
    ) -> tuple[bool, int]:
        """Decide whether the next batch is recorded, and after how many batches to check again.
        ``recorded`` says whether the previous batch was, ``delivered`` how many the pass had."""
        self._time_batches(delivered)
        if isinstance(observer, InlineObserver):
            return self._check_inline(observer, delivered)
        if not isinstance(observer, WorkerObserver):
            return True, CHECK_EVERY
        if not observer.may_pause or observer.ring.reports_stages():
            self._whole = True
        if recorded:
            remaining = self._remaining(observer, iterator)
            if remaining > 0:
                return True, remaining
            observer.set_active(False)
        remaining = self._until_next(observer, iterator)
        if remaining > 0:
            return False, remaining
        return True, self._remaining(observer, iterator)

    def _check_inline(self, observer: InlineObserver, delivered: int) -> tuple[bool, int]:
        """The same without workers, where nothing is ahead of the training loop."""
        if observer.reports_stages():
            self._whole = True
        if self._whole:
            observer.window_end = ALL_TASKS
        elif delivered >= observer.window_end:
            first, length = delivered, _SHORTEST
            if delivered:
                first, length = self._next_window(delivered, _SHORTEST, self._inline_cost_s)
            if self._budget.is_new:
                length = CHECK_EVERY
            if first > delivered:
                observer.set_active(False)
                return False, min(first - delivered, LONGEST)
            if self._budget.begin(length, self._inline_cost_s):
                observer.window_end = delivered + length
        remaining = observer.window_end - delivered
        observer.set_active(remaining > 0)
        return remaining > 0, min(CHECK_EVERY, remaining) if remaining > 0 else LONGEST

    def _remaining(self, observer: WorkerObserver, iterator: Any) -> int:
        """Return the batches until the next check, in the window that holds the next batch. At the
        end of the window it is extended if the budget allows that; 0 means it has ended."""
        ring, (first, end) = observer.ring, observer.ring.window()
        task: int = iterator._rcvd_idx
        if self._whole:
            if end != ALL_TASKS:
                ring.set_window(first, ALL_TASKS)
                observer.record_from_next_task(iterator)
            return CHECK_EVERY
        # workers are this far ahead, and must learn of an extension before they remove their hooks
        remaining = end - observer.capacity - observer.workers - task
        if remaining > 0 or task >= end:
            return max(0, remaining)
        length = shortest_window(observer.capacity)
        if self._keeps_step(self._cost_s) or not self._budget.take(length, self._cost_s):
            return end - task
        ring.set_window(first, end + length)
        return length

    def _until_next(self, observer: WorkerObserver, iterator: Any) -> int:
        """Return the batches until the next window, or until the next check; 0 where it begins."""
        task: int = iterator._rcvd_idx
        first, end = observer.ring.window()
        if task >= end:
            least = shortest_window(observer.capacity)
            sent: int = iterator._send_idx
            first, length = self._next_window(sent, least, self._cost_s)
            if first > sent:
                return min(first - sent, LONGEST)
            if not self._whole and not self._budget.take(length, self._cost_s):
                wait_s = self._budget.seconds_until(length, self._cost_s)
                batches = wait_s / max(self._cycle_s, _SHORTEST_CYCLE_S)
                return int(min(LONGEST, max(CHECK_EVERY, batches)))
            observer.ring.set_window(first, first + length)
            observer.record_from_next_task(iterator)
            observer.set_active(True)  # batches in flight now are recorded in part
        return max(0, first - task)

    def _next_window(self, task: int, least: int, cost_s: float) -> tuple[int, int]:
        """Return the first task, from ``task`` on, and the length of the next window."""
        if self._whole:
            return task, ALL_TASKS
        if self._keeps_step(cost_s):
            return window_of_ranks(task, recorded_per_s(cost_s) * self._cycle_s, least)
        return task, self._budget.next_length(least)

    def _keeps_step(self, cost_s: float) -> bool:
        """Return whether windows begin where those of other ranks do. Else the budget may pay for
        all batches."""
        return self.is_rank and recorded_per_s(cost_s) * self._cycle_s < 1

    def _time_batches(self, delivered: int) -> None:
        """Note how long a batch took since the last check."""
        now = self._now()
        if self._checked is not None and delivered > self._checked[1]:
            self._cycle_s = (now - self._checked[0]) / (delivered - self._checked[1])
        self._checked = now, delivered
