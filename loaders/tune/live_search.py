"""Runs a search on the batches of training.

It is a generator that training resumes after each batch, so that training never waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from pickle import PickleError
from typing import Protocol

from pipeprof.loaders.instrument.profiler import LoaderProfiler
from pipeprof.loaders.tune.agreement import (
    Terms,
    agreed_terms,
    first_error,
    of_rank,
    slowest,
)
from pipeprof.loaders.tune.drift import MOST_REPEATS, DriftWatch
from pipeprof.loaders.tune.ranks import OneRank, Ranks
from pipeprof.loaders.tune.search import Answer, Candidate, Measure, MeasuredStretch, Search, Step
from pipeprof.loaders.tune.stretch_clock import Delivered, StretchClock
from pipeprof.loaders.tune.stretch_length import is_enough, least_s
from pipeprof.log import log_caught
from pipeprof.model import Recording, TunedSetting

_log = logging.getLogger(__name__)

Propose = Callable[[Recording, TunedSetting], Callable[[], Sequence[Candidate] | None]]
"""Starts to find what may be faster than the setting of a recording, most promising first. The
function that it returns returns ``None`` until that is found."""


Event = Delivered | None
"""``None``: the epoch ended."""


class TunedTraining(Protocol):
    """What a search changes."""

    within_epochs: bool
    """Whether settings may change within an epoch, or between epochs only."""

    def use(self, setting: TunedSetting) -> None:
        """Switch to ``setting`` as soon as its workers are ready. Called after each batch until it
        is in use. Raises what starting a process raises."""

    def in_use(self, setting: TunedSetting) -> bool: ...

    def renew(self, setting: TunedSetting) -> None:
        """Let other workers take the place of those of ``setting`` when it is used next."""

    def why_failed(self, setting: TunedSetting) -> str | None:
        """Return why ``setting`` cannot be used any more."""

    def profiler_of(self, setting: TunedSetting) -> LoaderProfiler: ...

    def ended(self) -> None:
        """End workers that are no longer needed, and keep what was found."""


class LiveSearch:
    """Answers what ``search`` asks, from live batches."""

    def __init__(
        self,
        search: Search,
        training: TunedTraining,
        propose: Propose,
        find_ranks: Callable[[], Ranks],
        terms: Terms,
    ) -> None:
        self.search = search
        self.wanted: TunedSetting | None = search.current
        """What is measured, or to be measured; ``None`` once the search has ended."""
        self.proposing = False
        """Whether training continues until candidates are found."""
        self.repeats = 0
        """How often the search was repeated, because the loader fed less than before."""
        self.ranks: Ranks = OneRank()
        self._training, self._propose, self._find_ranks = training, propose, find_ranks
        self._terms = terms
        self.epoch_batches = terms.epoch_batches
        self._slowest = 0
        self._begun_s: float | None = None
        """When the first stretch began."""
        self._trained_s = 0.0
        """How long after that the last one ended."""
        self.notes: tuple[str, ...] = ()
        self.users_choice = ""
        """A setting that may be faster, and that is not tried."""

    def run(self) -> Generator[None, Event, None]:
        """Search, and search again when the accelerator gets less than it did."""
        self.ranks = self._find_ranks()
        agreed = yield from self.ranks.agree(self._terms, agreed_terms)
        self.notes, self.epoch_batches = agreed.notes, agreed.epoch_batches
        if agreed.refused:
            self.search.state, self.wanted = "off", None
            return
        self.search.current = agreed.first
        while True:
            yield from self._search()
            self.wanted = None
            self._training.ended()
            if self.repeats == MOST_REPEATS:
                return
            yield from self._until_drift()
            self.repeats += 1
            # the profiler of new workers knows no batches from before
            self._training.renew(self.search.current)

    @property
    def paying_s(self) -> float:
        """The time of which the search may cost a share: an epoch with the first setting, or all
        training so far, if that is longer; 0 until it is known."""
        first = self.search.first
        if first is None:
            return 0.0
        epoch_s = (self.epoch_batches or 10 * first.batches) / first.fed.batches_per_s
        return max(epoch_s, self._trained_s)

    def _search(self) -> Generator[None, Event, None]:
        steps = self.search.run()
        step = _next(steps, None)
        while step is not None:
            answer: Answer
            if isinstance(step, Measure):
                answer = yield from self._measured(step.setting)
            else:
                answer = yield from self._proposed(step.setting)
            step = _next(steps, answer)

    def _measured(self, setting: TunedSetting) -> Generator[None, Event, MeasuredStretch]:
        """Measure a stretch with ``setting`` in all ranks."""
        self.wanted = setting
        clock = StretchClock(setting, least_s(self.search, self.epoch_batches))
        error = yield from self._switched(setting, clock)
        error = yield from self.ranks.agree(error, first_error)
        stretch = _failed(setting, error)
        if error is None:
            stretch = yield from self._stretch(clock)
            if stretch.others_s:
                made_every_s = self._training.profiler_of(setting).made_every_s()
                stretch = replace(stretch, made_every_s=made_every_s)
            if self._begun_s is None:
                self._begun_s = clock.last_s - stretch.seconds
            stretch = replace(stretch, trained_s=clock.last_s - self._begun_s)
        agreed: tuple[int, MeasuredStretch] = yield from self.ranks.agree(stretch, slowest)
        self._slowest, stretch = agreed
        self._trained_s = stretch.trained_s or self._trained_s
        return stretch

    def _switched(
        self, setting: TunedSetting, clock: StretchClock
    ) -> Generator[None, Event, str | None]:
        """Wait until ``setting`` is used. Returns why it cannot be."""
        training = self._training
        while not training.in_use(setting):
            if reason := training.why_failed(setting):
                return reason
            event = yield
            if event is None:
                clock.interrupt()
            elif training.within_epochs:
                clock.batch(event)
                if training.in_use(setting):
                    continue
                try:
                    training.use(setting)
                except Exception as error:
                    log_caught(_log, error, f"{setting} is not tried")
                    return _in_short(error)
        return None

    def _stretch(self, clock: StretchClock) -> Generator[None, Event, MeasuredStretch]:
        setting = clock.setting
        while True:
            event = yield
            if event is None:
                if clock.batches and not self._training.within_epochs:
                    break
                clock.interrupt()
                error = yield from self._switched(setting, clock)  # in the next epoch
                if error is not None:
                    return _failed(setting, error)
            elif event.setting != setting:
                error = self._training.why_failed(setting) or "another setting took its place"
                return _failed(setting, error)
            else:
                clock.batch(event)
                if self._training.within_epochs and clock.batches and (
                    is_enough(clock, self.search, self.epoch_batches) or self.ranks.others_wait()
                ):  # fmt: skip
                    break
        return clock.stretch()

    def _proposed(self, setting: TunedSetting) -> Generator[None, Event, Sequence[Candidate]]:
        """Find what may be faster, from the batches of the slowest rank."""
        found: Sequence[Candidate] | None = ()
        if self._slowest == self.ranks.rank:
            profiler = self._training.profiler_of(setting)
            # training waits for this
            result = self._propose(profiler.recording(with_overhead=False), setting)
            self.proposing = True
            while (found := result()) is None:
                yield
            self.proposing = False
        agreed: Sequence[Candidate]
        agreed = yield from self.ranks.agree(found, partial(of_rank, self._slowest))
        for each in agreed:
            if each.is_users_choice:
                rate = f"{each.batches_per_s:,.0f} batches/s" if each.batches_per_s else "more"
                self.users_choice = (
                    f"{each.setting} would give about {rate}; only you can choose it"
                )
        return [each for each in agreed if not each.is_users_choice]

    def _until_drift(self) -> Generator[None, Event, None]:
        watch = DriftWatch(self.search)
        while not self.ranks.called():
            event = yield
            if event is None:
                watch.interrupt()
            elif watch.drifted(event):
                self._trained_s = event.delivered_s - (self._begun_s or 0.0)
                if self.search.budget_left_s > 0:
                    self.ranks.call()


def with_candidate(candidate: Candidate, propose: Propose) -> Propose:
    """Return a function that proposes ``candidate`` first, and then what ``propose`` does."""

    def start(recording: Recording, now: TunedSetting) -> Callable[[], Sequence[Candidate] | None]:
        result = propose(recording, now)

        def found() -> Sequence[Candidate] | None:
            others = result()
            return None if others is None else [candidate, *others]

        return found

    return start


def _next(steps: Generator[Step, Answer, None], answer: Answer | None) -> Step | None:
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration:
        return None


def _failed(setting: TunedSetting, error: str | None) -> MeasuredStretch:
    return MeasuredStretch(setting, 0, 0.0, 0.0, error=error)


def _in_short(error: Exception) -> str:
    """Return the kind of ``error``. Its text might hold a secret, but for those of the system."""
    kind = type(error).__name__
    if isinstance(error, ChildProcessError) and error.strerror:
        return error.strerror
    if isinstance(error, (PickleError, AttributeError, TypeError)) and "pickle" in str(error):
        return "workers need a data set that can be pickled"
    return f"{kind}: {error.strerror}" if isinstance(error, OSError) and error.strerror else kind
