"""Choose the next trial of a sweep that runs only those trials which can change its answer.

`analyze.sweep.search` makes the choice for each data set and batch size, from the saved profiles of
the trials. Data sets are searched each on its own. Forms of the same data, such as its copies in
other formats, are rivals: one that cannot be as fast as another is searched no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import numpy as np

from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns, steady
from pipeprof.analyze.sweep.noise import Noise, noise_of
from pipeprof.analyze.sweep.outlooks import Outlook, predict_untried
from pipeprof.analyze.sweep.search import Plan, choose_next
from pipeprof.errors import ProfileError, UsageError
from pipeprof.model import LoaderConfig, Profile, RunNoise, Trial, Untried
from pipeprof.storage.urls import redact
from pipeprof.store import load
from pipeprof.sweep.plan import TrialSetting

MAX_EXHAUSTIVE_SETTINGS = 6
"""The most settings that are all tried; a prediction would need two trials itself."""
_PREFETCH_WITHOUT_WORKERS = 2
"""The prefetch factor of `Setting` where it has no meaning."""


_Key = tuple[str, int | None]
"""Data set and batch size of the settings that are searched together."""


@dataclass(frozen=True)
class Choice:
    """The next trial, and what it is predicted to give."""

    setting: TrialSetting
    samples_per_s: float | None = None
    """The predicted samples/s; None where too little is known."""
    is_cheaper: bool = False
    """Whether it is to show only whether a cheaper setting is as fast."""


class Guide:
    """Chooses the trials of one sweep, and predicts those that it leaves out."""

    def __init__(
        self,
        settings: Sequence[TrialSetting],
        folder: Path,
        cores: float,
        exhaustive: bool = False,
        base: str | None = None,
    ) -> None:
        """An ``exhaustive`` one leaves no setting out. ``base`` is the URL of the data set of which
        all others are forms; its fastest setting is found anyway, as they are compared with it.
        ``None``: no data set is a form of another."""
        self._folder, self._cores, self._exhaustive = folder, cores, exhaustive
        self._base = base
        self._groups: dict[_Key, list[TrialSetting]] = {}
        for setting in settings:
            self._groups.setdefault((setting.url, setting.batch_size), []).append(setting)
        self._finished: set[_Key] = set()
        self._measured: dict[str, Measured] = {}
        """Measured runs by the file name of the trial's profile."""
        self._outlooks: dict[tuple[str, ...], tuple[Outlook, ...]] = {}
        """Predictions by the profiles of the trials behind them."""

    def next(self, trials: Sequence[Trial]) -> Choice | None:
        """Return the next trial; None when no other trial can change the answer."""
        return next(self._pending(trials), None)

    def pending(self, trials: Sequence[Trial]) -> set[str]:
        """Return the URLs of which a trial is still to run, with their readers."""
        return {choice.setting.url for choice in self._pending(trials)}

    def _pending(self, trials: Sequence[Trial]) -> Iterator[Choice]:
        """Yield the next trial of each data set and batch size that is not finished."""
        tried = self._by_group(trials)
        choices = (
            (key, self._next(key, tried)) for key in self._groups if key not in self._finished
        )
        for key, choice in choices if self._base is None else self._ranked(choices, tried):
            if choice is not None:
                yield choice
            else:
                self._finished.add(key)

    def _ranked(
        self,
        choices: Iterable[tuple[_Key, Choice | None]],
        tried: Mapping[_Key, Sequence[Trial]],
    ) -> Iterable[tuple[_Key, Choice | None]]:
        """Return the choices of rivals in the order that spares trials: of those without a trial
        first, and then of the fastest. Which setting is cheaper matters only for the answer."""

        def rank(each: tuple[_Key, Choice | None]) -> tuple[bool, float]:
            key, choice = each
            fastest = max((trial.samples_per_s for trial in tried[key]), default=inf)
            return choice is not None and choice.is_cheaper, -fastest

        return sorted(choices, key=rank)

    def _by_group(self, trials: Sequence[Trial]) -> dict[_Key, list[Trial]]:
        return {
            key: [trial for trial in trials if _same_group(trial, group[0])]
            for key, group in self._groups.items()
        }

    def _rival(self, key: _Key, tried: Mapping[_Key, Sequence[Trial]]) -> float:
        """Return the samples/s that the rivals of a group reach; 0 where it has none."""
        if self._base is None:
            return 0.0
        rivals = (trials for other, trials in tried.items() if other != key and other[1] == key[1])
        return max((trial.samples_per_s for each in rivals for trial in each), default=0.0)

    def untried(
        self, trials: Sequence[Trial], noise: Mapping[str, RunNoise]
    ) -> tuple[Untried, ...]:
        """Predict the settings that were left out. ``noise`` maps a URL to its repeated run."""
        untried, by_group = [], self._by_group(trials)
        for key, group in self._groups.items():
            tried, url = by_group[key], redact(group[0].url)
            between = noise_of([trial for trial in trials if trial.url == url], noise.get(url))
            for each in self._predicted(group, tried, between) or ():
                setting, samples = _with_workers(group[0], each.setting), self._samples(tried)
                untried.append(
                    Untried(
                        url, setting.batch_size, setting.num_workers, setting.prefetch_factor,
                        each.batches_per_s * samples, each.interval[1] * samples,
                        each.interval[0] * samples, each.may_be_faster,
                    )
                )  # fmt: skip
        return tuple(untried)

    def _next(self, key: _Key, by_group: Mapping[_Key, Sequence[Trial]]) -> Choice | None:
        group, tried = self._groups[key], by_group[key]
        plan = self._plan(group, tried, self._rival(key, by_group))
        if plan is None:
            done = {_loader_setting(trial.config) for trial in tried}
            remaining = (each for each in group if _loader_setting(each) not in done)
            return next((Choice(each) for each in remaining), None)
        if plan.trial is None:
            return None
        rates = (each.batches_per_s for each in plan.outlooks if each.setting == plan.trial)
        predicted = next((rate * self._samples(tried) for rate in rates), None)
        return Choice(_with_workers(group[0], plan.trial), predicted, plan.is_cheaper)

    def _plan(
        self, group: Sequence[TrialSetting], tried: Sequence[Trial], rival: float
    ) -> Plan | None:
        """Plan the next trial of a group; None where all its settings are to be tried."""
        profiles = tuple(trial.profile for trial in tried)
        if profiles not in self._outlooks:
            found = self._predicted(group, tried)
            if found is None:
                return None
            self._outlooks[profiles] = found
        batches = rival / self._samples(tried) if tried else 0.0
        return choose_next(
            [_loader_setting(each) for each in group], list(self._runs(tried)),
            self._outlooks[profiles], batches, for_comparison=group[0].url == self._base,
        )  # fmt: skip

    def _predicted(
        self, group: Sequence[TrialSetting], tried: Sequence[Trial], noise: Noise | None = None
    ) -> tuple[Outlook, ...] | None:
        """Predict what was not tried of a group; None where all its settings are to be tried. This
        is so for a small group, and where trials were too short to predict others."""
        if self._exhaustive or len(group) <= MAX_EXHAUSTIVE_SETTINGS:
            return None
        try:
            settings = [_loader_setting(each) for each in group]
            return predict_untried(settings, list(self._runs(tried)), self._cores, noise)
        except UsageError:
            return None

    def _runs(self, tried: Sequence[Trial]) -> Iterator[Measured]:
        """Yield the measured batches of each trial, without its warm-up."""
        for trial in tried:
            if trial.profile not in self._measured:
                profile = load(self._folder / trial.profile)
                if not isinstance(profile, Profile):
                    raise ProfileError(f"{self._folder / trial.profile} is not a profile.")
                columns = Columns.of(profile.batches)
                setting = replace(
                    _loader_setting(trial.config), in_order=trial.config.in_order,
                    pin_memory=not bool(np.isnan(columns.pinned_s).all()),
                )  # fmt: skip
                kept = columns.take(steady(columns, setting.warmup))
                self._measured[trial.profile] = Measured(setting, kept)
            yield self._measured[trial.profile]

    def _samples(self, tried: Sequence[Trial]) -> float:
        """Return the samples of a batch in the first trial."""
        run = next(self._runs(tried[:1]))
        return tried[0].samples_per_s / run.batches_per_s


def setting_of(trial: Trial, settings: Sequence[TrialSetting]) -> TrialSetting:
    """Return the setting of ``trial``, with the credentials that a saved trial lacks."""
    return _with_workers(next(each for each in settings if _same_group(trial, each)), trial.config)


def _with_workers(setting: TrialSetting, workers: Setting | LoaderConfig) -> TrialSetting:
    """Return ``setting`` with the number of workers and the prefetch factor of ``workers``."""
    prefetch = workers.prefetch_factor if workers.num_workers else None
    return replace(setting, num_workers=workers.num_workers, prefetch_factor=prefetch)


def _same_group(trial: Trial, setting: TrialSetting) -> bool:
    """Return whether both have the same data set and batch size."""
    return trial.url == redact(setting.url) and setting.batch_size in (
        None, trial.config.batch_size,
    )  # fmt: skip


def _loader_setting(setting: TrialSetting | LoaderConfig) -> Setting:
    prefetch = setting.prefetch_factor if setting.num_workers else None
    return Setting(setting.num_workers, prefetch or _PREFETCH_WITHOUT_WORKERS)
