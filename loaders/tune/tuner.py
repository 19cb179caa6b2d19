"""Runs the search on live batches: measures stretches, switches variants, undoes what fails.

What to try next is simulated in a thread, while training continues with the present setting.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import torch
from torch.utils.data import DataLoader

from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.search import Candidate, MeasuredStretch, Search
from pipeprof.loaders.tune.stretch_clock import StretchClock
from pipeprof.loaders.tune.tuned_epoch import TunedEpoch
from pipeprof.loaders.tune.variant import Variant, setting_of
from pipeprof.log import log_caught
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import Recording, TunedSetting, Tuning

_log = logging.getLogger(__name__)

_DECISIONS: weakref.WeakSet[Future[Any]] = weakref.WeakSet()
"""Those that may still be found."""
# a process that is forked while another thread holds a lock may wait for it for ever
os.register_at_fork(before=lambda: wait(_DECISIONS))

Propose = Callable[[Recording, TunedSetting], Sequence[Candidate]]
"""Returns what may be faster than the setting of a recording, most promising first."""


class Tuner:
    """Tunes one loader."""

    def __init__(
        self,
        loader: DataLoader[Any],
        propose: Propose,
        budget: float,
        first: TunedSetting | None = None,
        clock: Clock = SYSTEM_CLOCK,
        within_epochs: bool = True,
        notes: tuple[str, ...] = (),
        ended: Callable[[TunedSetting], None] | None = None,
    ) -> None:
        self.loader = loader
        self._within_epochs = within_epochs
        """Whether settings may change within an epoch, or between epochs only."""
        self._notes = notes
        self._ended = ended
        """Called with the chosen setting when the search has ended."""
        self.clock = clock
        self._budget = budget
        self._order = EpochOrder(loader)
        self._variants: dict[TunedSetting, Variant] = {}
        self._seeds = torch.Generator()
        """Of the workers that start next."""
        self._own = setting_of(loader)
        self._first = first or self._own
        self.search = Search(self._first, self._candidates, self._budget_s)
        self._propose = propose
        self._steps = self.search.run()
        self._wanted: TunedSetting | None = next(self._steps)
        """What to measure; ``None`` once the search has ended."""
        self._recorded: Any = None
        """Of the setting that was measured last."""
        self._thread = ThreadPoolExecutor(1, "pipeprof-tune")
        self._decision: Future[TunedSetting] | None = None
        """What to measure next, while that is being found."""
        self._clocked = StretchClock(self._first)
        self._epoch_batches = _length(loader)
        self._open: Callable[[], TunedEpoch | None] = _none
        """Of the epoch that has not ended."""

    def variant(self, setting: TunedSetting) -> Variant:
        if setting not in self._variants:
            may_fail = self._within_epochs and setting != self._own
            self._variants[setting] = Variant(self.loader, setting, self._order, may_fail)
        return self._variants[setting]

    @property
    def profiler(self) -> LoaderProfiler:
        """Of the setting that is used now."""
        return self.variant(self.search.current).profiler

    def iterate(self) -> Iterator[Any]:
        """Start an epoch. While another one is open, the user's loader yields it untuned."""
        if self._open() is not None:
            return iter(self.loader)
        epoch = TunedEpoch(self, self._begin())
        self._open = weakref.ref(epoch)
        return epoch

    def _begin(self) -> CarriedEpoch:
        self._await_decision()  # no worker is forked while the thread runs
        for variant in self._variants.values():
            variant.part.reset()
        self._seeds = self._order.begin()
        trial = None if self._within_epochs else self._wanted
        current = self.variant(trial or self.search.current)
        current.start(self._seeds)
        self._seeds = torch.Generator().manual_seed(self._seeds.initial_seed() + 1)
        self._clocked.interrupt(current.setting)
        return CarriedEpoch(current)

    def end(self) -> None:
        """End the workers, as those of the user's loader do at the end of an epoch."""
        self._open = _none
        for variant in self._variants.values():
            if variant.running and not (
                self.loader.persistent_workers and variant.setting == self.search.current
            ):
                variant.end()
        if not self._within_epochs and self._clocked.batches and self._wanted is not None:
            self._report(self._clocked.stretch())
            self._await_decision()

    def tuning(self) -> Tuning:
        """Return what was done so far."""
        search = self.search
        return Tuning(
            search.state,
            self._own,
            search.current,
            self._first,
            search.first.fed if search.first else None,
            search.last.fed if search.last else None,
            tuple(search.attempts),
            search.lost_s,
            self._notes,
        )

    def delivered(self, epoch: CarriedEpoch, asked_s: float, delivered_s: float) -> None:
        """Note a batch, and do what comes next: measure on, switch, or end the search."""
        if self._decision is not None and self._decision.done():
            self._await_decision()
        if self._wanted is None or self._decision is not None or self.search.state == "failed":
            return
        if epoch.current.setting != self._wanted:
            if self._within_epochs:
                self._approach(epoch, self._wanted)
            return
        self._clocked.batch(asked_s, delivered_s)
        if self._within_epochs and (self._clocked.long_enough or self._too_slow()):
            self._report(self._clocked.stretch())

    def failed(self, epoch: CarriedEpoch) -> bool:
        """Continue with another setting for one that lost a worker.

        Returns:
            False if the user's loader would have failed, too, or if the epoch cannot be continued.
        """
        variant, search = epoch.current, self.search
        if variant.setting == self._own or not variant.lost_worker or not self._within_epochs:
            return False
        self._await_decision()
        if variant.setting == search.current:  # it was kept
            self._wanted, search.current, search.state = None, self._own, "failed"
            self._notes += (f"{variant.setting} lost a worker after it was kept",)
            if self._ended:
                self._ended(self._own)
        epoch.replace(self.variant(search.current))
        variant.end()
        if self._wanted == variant.setting:
            self._report(MeasuredStretch(variant.setting, 0, 0.0, 0.0, error="a worker died"))
        return True

    def _candidates(self, now: TunedSetting) -> Sequence[Candidate]:
        found = self._propose(self._recorded, now)
        # one that an earlier run chose must still be better than the user's own
        return found if self._first == self._own else [Candidate(self._own), *found]

    def _too_slow(self) -> bool:
        """Whether the trial that runs has already lost what is left of the budget."""
        clocked, last = self._clocked, self.search.last
        if not clocked.batches or clocked.setting == self.search.current or last is None:
            return False
        slower_s = clocked.seconds - clocked.batches / last.fed.batches_per_s
        return slower_s > self._budget_s() - self.search.lost_s

    def _approach(self, epoch: CarriedEpoch, wanted: TunedSetting) -> None:
        """Start the workers of ``wanted``; switch once they wait for indices."""
        if epoch.switching:
            return
        variant = self.variant(wanted)
        begun_s = self.clock.now()
        try:
            if not variant.running:
                variant.start(self._next_seeds())
            if variant.ready:
                epoch.switch(variant)
            elif variant.lost_worker:
                raise ChildProcessError(0, "a worker died while it started")
        except Exception as error:
            log_caught(_log, error, f"{wanted} is not tried")
            variant.end()
            self._report(MeasuredStretch(wanted, 0, 0.0, 0.0, error=_in_short(error)))
            return
        self._clocked.lost_s += self.clock.now() - begun_s

    def _report(self, stretch: MeasuredStretch) -> None:
        """Let the search decide what to measure next."""
        self._recorded = self.variant(stretch.setting).profiler.recording()
        self._decision = self._thread.submit(self._steps.send, stretch)
        _DECISIONS.add(self._decision)

    def _await_decision(self) -> None:
        if self._decision is None:
            return
        try:
            self._wanted = self._decision.result()
        except StopIteration:
            self._wanted = None
        except Exception as error:
            log_caught(_log, error, "the loader is not tuned further")
            self.give_up()
        self._decision = None
        if self._wanted is None:
            self._thread.shutdown(wait=False)
            self._end_others()
            if self._ended and self.search.state != "failed":
                self._ended(self.search.current)
        else:
            self._clocked = StretchClock(self._wanted)

    def give_up(self) -> None:
        """Continue with the present setting after an error of pipeprof's own."""
        self.search.state, self._wanted = "failed", None

    def _end_others(self) -> None:
        for setting, variant in self._variants.items():
            if setting != self.search.current and variant.part.drained:
                variant.end()

    def _next_seeds(self) -> torch.Generator:
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self._seeds))
        return torch.Generator().manual_seed(seed)

    def _budget_s(self) -> float:
        first = self.search.first
        if first is None:
            return 0.0
        batches = self._epoch_batches or 10 * first.batches
        return self._budget * batches / first.fed.batches_per_s


def _in_short(error: Exception) -> str:
    """Return the kind of ``error``. Its text might hold a secret, but for those of the system."""
    kind = type(error).__name__
    return f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind


def _none() -> None:
    return None


def _length(loader: DataLoader[Any]) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None
