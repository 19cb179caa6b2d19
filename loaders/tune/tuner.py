"""Switches the variants of a loader while training runs, and undoes what fails."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from pipeprof.loaders.instrument.inside import being_measured
from pipeprof.loaders.instrument.loader_info import known_length
from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.tune.agreement import Terms
from pipeprof.loaders.tune.epoch import CarriedEpoch
from pipeprof.loaders.tune.kept_workers import KeptWorkers
from pipeprof.loaders.tune.lacking import what_is_lacking
from pipeprof.loaders.tune.left_open import LeftOpen
from pipeprof.loaders.tune.live_search import Event, LiveSearch, Propose, with_candidate
from pipeprof.loaders.tune.order import EpochOrder
from pipeprof.loaders.tune.ranks import OneRank, Ranks, RanksDisagree
from pipeprof.loaders.tune.search import Candidate, Search
from pipeprof.loaders.tune.stretch_clock import BatchTimes, Delivered
from pipeprof.loaders.tune.training_steps import TrainingSteps
from pipeprof.loaders.tune.tuned_epoch import TunedEpoch
from pipeprof.loaders.tune.variant import Variant
from pipeprof.loaders.tune.variants import Variants
from pipeprof.log import log_caught, suppress_and_log
from pipeprof.measure import pauses
from pipeprof.measure.clock import SYSTEM_CLOCK, Clock
from pipeprof.model import TunedSetting, Tuning

if TYPE_CHECKING:  # what shows figures is imported only where that is asked for
    from pipeprof.loaders.live.live_pass import LiveLoader

_log = logging.getLogger(__name__)

_NO_FORK = "workers forked now would be wrong, so none are tried. With num_workers=1 they are"


class Tuner:
    """Tunes one loader."""

    def __init__(
        self,
        loader: DataLoader[Any],
        propose: Propose,
        budget: float,
        terms: Terms,
        own: TunedSetting,
        find_ranks: Callable[[], Ranks] = OneRank,
        clock: Clock = SYSTEM_CLOCK,
        within_epochs: bool = True,
        may_keep_workers: bool = False,
        notes: tuple[str, ...] = (),
        keep: Callable[[TunedSetting], None] | None = None,
        shown: LiveLoader | None = None,
        name: str = "loader",
    ) -> None:
        """``own`` is the setting to return to if others fail. ``may_keep_workers``: those of a
        loader that starts new ones in each epoch may stay. ``keep`` is called with the chosen
        setting when the search has ended. ``shown`` gets the figures of all settings. ``name`` is
        that of the loader in profiles."""
        self.loader = loader
        self.clock = clock
        self.within_epochs = within_epochs
        self._notes = notes
        self._keep = keep
        self._order = EpochOrder(loader)
        self._own, self._first = own, terms.first
        self._variants = Variants(loader, self._order, own, name)
        self.show = self._variants.show
        self.show(shown)
        self._left_open = LeftOpen.by(loader)
        self._failures: dict[TunedSetting, str] = {}
        """Why a setting cannot be used."""
        self.search = Search(terms.first, lambda: budget * self.live.paying_s)
        if self._first != own:  # what an earlier run chose must still be better than that
            propose = with_candidate(Candidate(own), propose)
        self.live = LiveSearch(self.search, self, propose, find_ranks, terms)
        self._steps: Generator[None, Event, None] | None = self.live.run()
        """Resumed after each batch; ``None`` once nothing is measured any more."""
        self._training_steps = TrainingSteps()
        self._kept = KeptWorkers(loader, may_keep_workers, clock.now)
        self._started: Variant | None = None
        """The variant whose workers this epoch began with, if it started them."""
        self._closed = False
        self._open: Callable[[], TunedEpoch | None] = _none
        """Of the epoch that has not ended."""
        self._carried: Callable[[], CarriedEpoch | None] = _none

    @property
    def searches(self) -> bool:
        """Whether settings are measured; it ends with the search, and begins again with drift."""
        return self._steps is not None and self.live.wanted is not None

    def variant(self, setting: TunedSetting) -> Variant:
        return self._variants.of(setting)

    @property
    def profiler(self) -> LoaderProfiler:
        """Of the setting that is used now."""
        return self.profiler_of(self.search.current)

    def profiler_of(self, setting: TunedSetting) -> LoaderProfiler:
        return self.variant(setting).profiler

    def iterate(self) -> Iterator[Any]:
        """Start an epoch. While another one is open, the user's loader yields it untuned."""
        if self._open() is not None:
            with being_measured(self.loader):  # `pipeprof run --tune` would come back here
                return iter(self.loader)
        carried = self._begin()
        epoch = TunedEpoch(self, carried)
        self._open, self._carried = weakref.ref(epoch), weakref.ref(carried)
        return epoch

    def _begin(self) -> CarriedEpoch:
        pauses.listen(self._training_steps)
        self._training_steps.begin(None)
        self._resume(None)
        while self._steps and self.live.proposing and not self.within_epochs:
            time.sleep(0.01)
            self._resume(None)
        for variant in self._variants.all():
            variant.part.reset()
        if not self._kept.begin() and not self.loader.persistent_workers:
            self._variants.end_all_but(None)
        seeds = self._order.begin()
        trial = None if self.within_epochs else self.live.wanted
        current = self.variant(trial or self.search.current)
        self._started = None if current.running else current
        current.start(seeds)
        if self._variants.shown is not None:
            self._variants.shown.begin_epoch(known_length(self.loader))
        return CarriedEpoch(current, self._left_open)

    def end(self, epoch: CarriedEpoch, times: Sequence[BatchTimes]) -> None:
        """End the workers, as those of the user's loader do at the end of an epoch. The last
        batches of the ``epoch`` have these ``times``, as for `delivered`."""
        self._open = self._carried = _none  # so they lead to no switch
        self.delivered(epoch, times)
        current = self._variants.known(self.search.current)
        stays = self._kept.end(self._started is not None and self._started is current)
        stays = (stays or self.loader.persistent_workers) and not self._closed
        self._variants.end_all_but(current if stays else None)
        self._variants.forget_renewed()
        self._resume(None)
        if any(each.kept for each in self.search.attempts):
            self._remember()  # the search may take more epochs than are trained

    def close(self) -> None:
        """Keep no workers between epochs. They end at once, or with an epoch that is open."""
        self._closed = True
        if self._open() is None:
            self._variants.end_all_but(None)

    def tuning(self) -> Tuning:
        """Return what was done so far."""
        search, repeats = self.search, self.live.repeats
        again = f"the loader fed less than before: {repeats} more searches" if repeats else ""
        later = filter(None, (self.live.users_choice, again, self._kept.note))
        return Tuning(
            search.state, self._own, search.current, self._first,
            search.first.fed if search.first else None,
            search.last.fed if search.last else None,
            tuple(search.attempts), search.lost_s, (*self._notes, *self.live.notes, *later),
        )  # fmt: skip

    def delivered(self, epoch: CarriedEpoch, times: Sequence[BatchTimes]) -> None:
        """Note batches, and do what comes next: measure on, switch, or end the search.

        Args:
            epoch: What delivered them, all with its current variant.
            times: Of each. The step on the last one has not begun.
        """
        if times:
            self._kept.delivered()
        if self._left_open.what and self._steps is not None:  # before it starts any worker
            self._give_up(f"{self._left_open.what}: {_NO_FORK}")
        if self._steps is None:
            return
        used, steps = epoch.current, self._training_steps
        waits = used.profiler.device_waits()
        for asked_s, delivered_s, others_s in times:
            after_pause = steps.paused(asked_s)
            if steps.by_length is not None:
                used.profiler.note_pause(*steps.by_length)
            steps.begin(delivered_s)
            batch = Delivered(used.setting, asked_s, delivered_s, after_pause, waits, others_s)
            self._resume(batch)
        steps.begin(self.clock.now())

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

    def failed(self, epoch: CarriedEpoch, error: Exception) -> bool:
        """Continue with another setting, or with other workers, where a worker was lost, a limit of
        the machine was met, or workers raise what may come of their fork.

        Returns:
            False if the user's loader would have failed, too, or if the epoch cannot be continued.
        """
        variant, search = epoch.current, self.search
        variant.await_death(error)
        reason = "a worker died" if variant.lost_worker else what_is_lacking(error)
        on_trial, may_be_forks = variant.setting != search.current, False
        if reason is None and not variant.trusted:  # the data may be at fault, or only its forks
            reason, may_be_forks = f"its workers raised {type(error).__name__}", True
        if reason is None or not self._variants.can_be_undone:
            return False
        blamed = [variant] if on_trial else self._variants.running_with(variant)
        if not blamed or (may_be_forks and not on_trial):
            if variant.setting == self._own:
                return False
            blamed = [variant]  # it was kept
            search.current = self._own
            self._give_up(f"{variant.setting} failed after it was kept: {reason}")
            self._remember()
        for each in blamed:  # or they took what the present setting lacked
            self._failures[each.setting] = reason
        epoch.give_up()
        for each in blamed:
            each.end()
        current = self.variant(search.current)
        if current.lost_worker:
            current.end()
        current.start(self._order.later_seeds())
        epoch.resume(current)
        return True

    def why_failed(self, setting: TunedSetting) -> str | None:
        return self._failures.get(setting)

    def in_use(self, setting: TunedSetting) -> bool:
        carried = self._carried()
        return carried is not None and carried.current is self._variants.known(setting)

    def use(self, setting: TunedSetting) -> None:
        epoch = self._carried()
        if epoch is None or epoch.switching:
            return
        variant = self.variant(setting)
        try:
            if not variant.running:
                # if memory gets short, the kernel may kill a worker of either
                self.variant(self.search.current).ignore_deaths()
                variant.start(self._order.later_seeds())
            if variant.ready:
                epoch.switch(variant)
            elif variant.lost_worker:
                raise ChildProcessError(0, "a worker died while it started")
        except Exception:
            variant.end()
            raise

    def renew(self, setting: TunedSetting) -> None:
        self._variants.renew(setting)

    def ended(self) -> None:
        self._left_open.end_watch()
        self.variant(self.search.current).trust()
        for variant in self._variants.all():
            if variant.setting != self.search.current and variant.part.drained:
                variant.end()
        if self.search.current == self._own:
            self.variant(self._own).heed_deaths()
        self._remember()

    def _remember(self) -> None:
        """Keep the present setting for the next run."""
        if self._keep is not None and self.live.ranks.rank == 0:
            self._keep(self.search.current)

    def _give_up(self, reason: str = "") -> None:
        """Continue with the present setting."""
        self.search.state, self.live.wanted, self._steps = "failed", None, None
        self._left_open.end_watch()
        reason = reason or "an error of pipeprof; PIPEPROF_LOG=debug shows it"
        self._notes += (reason,)
        with suppress_and_log(_log, "other ranks wait for this one"):
            ranks = self.live.ranks
            ranks.leave(f"the search of rank {ranks.rank} failed: {reason}")


def _none() -> None:
    return None
