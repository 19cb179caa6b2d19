"""Switches the variants of a loader while training runs, and undoes what fails."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import DataLoader

from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.tune.agreement import Terms
from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.loaders.tune.live_search import Delivered, Event, LiveSearch, Propose
from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.ranks import OneRank, Ranks, RanksDisagree
from pipeprof.loaders.tune.search import Candidate, Search
from pipeprof.loaders.tune.tuned_epoch import TunedEpoch
from pipeprof.loaders.tune.variant import Variant, setting_of
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import Recording, TunedSetting, Tuning

_log = logging.getLogger(__name__)


class Tuner:
    """Tunes one loader."""

    def __init__(
        self,
        loader: DataLoader[Any],
        propose: Propose,
        budget: float,
        terms: Terms,
        find_ranks: Callable[[], Ranks] = OneRank,
        clock: Clock = SYSTEM_CLOCK,
        within_epochs: bool = True,
        notes: tuple[str, ...] = (),
        keep: Callable[[TunedSetting], None] | None = None,
    ) -> None:
        """``keep`` is called with the chosen setting when the search has ended."""
        self.loader = loader
        self.clock = clock
        self.within_epochs = within_epochs
        self._notes = notes
        self._keep = keep
        self._budget = budget
        self._order = EpochOrder(loader)
        self._variants: dict[TunedSetting, Variant] = {}
        self._renewed: list[Variant] = []
        """Variants whose place others took."""
        self._seeds = torch.Generator()
        """Of the workers that start next."""
        self._own, self._first = setting_of(loader), terms.first
        self._propose = propose
        self._died: set[TunedSetting] = set()
        """Settings that lost a worker."""
        self.search = Search(terms.first, self._budget_s)
        self.live = LiveSearch(self.search, self, self._started_proposal, find_ranks, terms)
        self._steps: Generator[None, Event, None] | None = self.live.run()
        """Resumed after each batch; ``None`` once nothing is measured any more."""
        self._open: Callable[[], TunedEpoch | None] = _none
        """Of the epoch that has not ended."""
        self._carried: Callable[[], CarriedEpoch | None] = _none

    def variant(self, setting: TunedSetting) -> Variant:
        if setting not in self._variants:
            may_fail = self.within_epochs and setting != self._own
            self._variants[setting] = Variant(self.loader, setting, self._order, may_fail)
        return self._variants[setting]

    @property
    def profiler(self) -> LoaderProfiler:
        """Of the setting that is used now."""
        return self.profiler_of(self.search.current)

    def profiler_of(self, setting: TunedSetting) -> LoaderProfiler:
        return self.variant(setting).profiler

    def iterate(self) -> Iterator[Any]:
        """Start an epoch. While another one is open, the user's loader yields it untuned."""
        if self._open() is not None:
            return iter(self.loader)
        carried = self._begin()
        epoch = TunedEpoch(self, carried)
        self._open, self._carried = weakref.ref(epoch), weakref.ref(carried)
        return epoch

    def _begin(self) -> CarriedEpoch:
        self._resume(None)
        while self._steps and self.live.proposing and not self.within_epochs:
            time.sleep(0.01)
            self._resume(None)
        for variant in self._all_variants():
            variant.part.reset()
        self._seeds = self._order.begin()
        trial = None if self.within_epochs else self.live.wanted
        current = self.variant(trial or self.search.current)
        current.start(self._seeds)
        self._seeds = torch.Generator().manual_seed(self._seeds.initial_seed() + 1)
        return CarriedEpoch(current)

    def end(self) -> None:
        """End the workers, as those of the user's loader do at the end of an epoch."""
        self._open = self._carried = _none
        kept = self._variants.get(self.search.current) if self.loader.persistent_workers else None
        for variant in self._all_variants():
            if variant.running and variant is not kept:
                variant.end()
        self._renewed.clear()
        self._resume(None)

    def tuning(self) -> Tuning:
        """Return what was done so far."""
        search, repeats = self.search, self.live.repeats
        drifted = f"the loader fed less than before, so the search was repeated {repeats} times"
        return Tuning(
            search.state,
            self._own,
            search.current,
            self._first,
            search.first.fed if search.first else None,
            search.last.fed if search.last else None,
            tuple(search.attempts),
            search.lost_s,
            (*self._notes, *self.live.notes, *([drifted] if repeats else [])),
        )

    def delivered(self, epoch: CarriedEpoch, asked_s: float, delivered_s: float) -> None:
        """Note a batch, and do what comes next: measure on, switch, or end the search."""
        if self._steps is not None:
            self._resume(Delivered(epoch.current.setting, asked_s, delivered_s))

    def _resume(self, event: Event) -> None:
        if self._steps is None:
            return
        try:
            self._steps.send(event)
        except StopIteration:
            self._steps = None
        except Exception as error:
            log_caught(_log, error, "the loader is not tuned further")
            self._give_up(str(error) if isinstance(error, RanksDisagree) else "")

    def failed(self, epoch: CarriedEpoch) -> bool:
        """Continue with another setting for one that lost a worker.

        Returns:
            False if the user's loader would have failed, too, or if the epoch cannot be continued.
        """
        variant, search = epoch.current, self.search
        if variant.setting == self._own or not variant.lost_worker or not self.within_epochs:
            return False
        if variant.setting == search.current:  # it was kept
            search.current = self._own
            self._give_up(f"{variant.setting} lost a worker after it was kept")
            if self._keep:
                self._keep(self._own)
        self._died.add(variant.setting)
        epoch.replace(self.variant(search.current))
        variant.end()
        return True

    def in_use(self, setting: TunedSetting) -> bool:
        carried = self._carried()
        return carried is not None and carried.current is self._variants.get(setting)

    def use(self, setting: TunedSetting) -> float:
        epoch = self._carried()
        if epoch is None or epoch.switching:
            return 0.0
        begun_s, variant = self.clock.now(), self.variant(setting)
        try:
            if setting in self._died:
                raise ChildProcessError(0, "a worker died")
            if not variant.running:
                variant.start(self._next_seeds())
            if variant.ready:
                epoch.switch(variant)
            elif variant.lost_worker:
                raise ChildProcessError(0, "a worker died while it started")
        except Exception:
            variant.end()
            raise
        return self.clock.now() - begun_s

    def renew(self, setting: TunedSetting) -> None:
        if setting in self._variants:
            self._renewed.append(self._variants.pop(setting))

    def ended(self) -> None:
        for variant in self._all_variants():
            if variant.setting != self.search.current and variant.part.drained:
                variant.end()
        if self._keep and self.live.ranks.rank == 0:
            self._keep(self.search.current)

    def _started_proposal(
        self, recording: Recording, now: TunedSetting
    ) -> Callable[[], Sequence[Candidate] | None]:
        result = self._propose(recording, now)
        # one that an earlier run chose must still be better than the user's own
        own = [Candidate(self._own)] if self._first != self._own else []

        def with_own() -> Sequence[Candidate] | None:
            found = result()
            return None if found is None else [*own, *found]

        return with_own

    def _give_up(self, reason: str = "") -> None:
        """Continue with the present setting."""
        self.search.state, self.live.wanted, self._steps = "failed", None, None
        self._notes += (reason,) if reason else ()
        with suppress_and_log(_log, "other ranks wait for this one"):
            ranks = self.live.ranks
            ranks.leave(f"the search of rank {ranks.rank} failed")

    def _all_variants(self) -> Sequence[Variant]:
        return [*self._variants.values(), *self._renewed]

    def _next_seeds(self) -> torch.Generator:
        seed = int(torch.empty((), dtype=torch.int64).random_(generator=self._seeds))
        return torch.Generator().manual_seed(seed)

    def _budget_s(self) -> float:
        first = self.search.first
        if first is None:
            return 0.0
        batches = self.live.epoch_batches or 10 * first.batches
        return self._budget * batches / first.fed.batches_per_s


def _none() -> None:
    return None
