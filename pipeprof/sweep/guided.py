"""A sweep that runs only those trials of its grid that can change the answer.

Each data set and batch size is a question of its own. `analyze.sweep.search` decides, by what the
saved profiles of its trials hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeprof.analyze.predict.workload import Measured, Setting
from pipeprof.analyze.profile.batch_table import Columns, steady
from pipeprof.analyze.sweep.noise import Noise, noise_of
from pipeprof.analyze.sweep.search import Plan, plan
from pipeprof.errors import ProfileError, UsageError
from pipeprof.model import LoaderConfig, Profile, RunNoise, Trial, Untried
from pipeprof.storage.urls import redact
from pipeprof.store import load
from pipeprof.sweep.plan import TrialSetting

SMALL = 6
"""So few settings are all tried: to predict takes two trials itself."""
_PREFETCH = 2
"""Written where it means nothing: without workers."""


@dataclass(frozen=True)
class Choice:
    """The next trial."""

    setting: TrialSetting
    samples_per_s: float | None = None
    """Predicted, where enough was known to."""


class Guide:
    def __init__(self, settings: Sequence[TrialSetting], folder: Path, cores: float) -> None:
        self._folder, self._cores = folder, cores
        self._groups: dict[tuple[str, int | None], list[TrialSetting]] = {}
        for setting in settings:
            self._groups.setdefault((setting.url, setting.batch_size), []).append(setting)
        self._settled: set[tuple[str, int | None]] = set()
        self._measured: dict[str, Measured] = {}
        """By the trial's profile."""

    def next(self, trials: Sequence[Trial]) -> Choice | None:
        """``None``: no other trial can change the answer."""
        for key, group in self._groups.items():
            if key in self._settled:
                continue
            tried = [trial for trial in trials if _is_of(trial, group[0])]
            choice = self._next(group, tried)
            if choice is not None:
                return choice
            self._settled.add(key)
        return None

    def untried(
        self, trials: Sequence[Trial], noise: Mapping[str, RunNoise]
    ) -> tuple[Untried, ...]:
        """What the settings that were left out would give. ``noise``: by URL."""
        found = []
        for group in self._groups.values():
            tried = [trial for trial in trials if _is_of(trial, group[0])]
            url = redact(group[0].url)
            between = noise_of([trial for trial in trials if trial.url == url], noise.get(url))
            told = self._plan(group, tried, between)
            for each in told.outlooks if told else ():
                setting, samples = _like(group[0], each.setting), self._samples(tried)
                found.append(
                    Untried(
                        url, setting.batch_size, setting.num_workers, setting.prefetch_factor,
                        each.batches_per_s * samples, each.interval[1] * samples,
                        each.interval[0] * samples,
                    )
                )  # fmt: skip
        return tuple(found)

    def _next(self, group: Sequence[TrialSetting], tried: Sequence[Trial]) -> Choice | None:
        told = self._plan(group, tried)
        if told is None:
            done = {_loader_setting(trial.config) for trial in tried}
            left = (each for each in group if _loader_setting(each) not in done)
            return next((Choice(each) for each in left), None)
        if told.trial is None:
            return None
        rates = (each.batches_per_s for each in told.outlooks if each.setting == told.trial)
        predicted = next((rate * self._samples(tried) for rate in rates), None)
        return Choice(_like(group[0], told.trial), predicted)

    def _plan(
        self, group: Sequence[TrialSetting], tried: Sequence[Trial], noise: Noise | None = None
    ) -> Plan | None:
        """``None``: so few are all tried, or its trials were too short to predict others."""
        if len(group) <= SMALL:
            return None
        try:
            return plan([_loader_setting(each) for each in group], list(self._runs(tried)),
                        self._cores, noise)  # fmt: skip
        except UsageError:
            return None

    def _runs(self, tried: Sequence[Trial]) -> Iterator[Measured]:
        for trial in tried:
            if trial.profile not in self._measured:
                profile = load(self._folder / trial.profile)
                if not isinstance(profile, Profile):
                    raise ProfileError(f"{self._folder / trial.profile} is not a profile.")
                setting, columns = _loader_setting(trial.config), Columns.of(profile.batches)
                kept = columns.take(steady(columns, setting.warmup))
                self._measured[trial.profile] = Measured(setting, kept)
            yield self._measured[trial.profile]

    def _samples(self, tried: Sequence[Trial]) -> float:
        """Of a batch, in the first trial."""
        run = next(self._runs(tried[:1]))
        return tried[0].samples_per_s / run.batches_per_s


def setting_of(trial: Trial, settings: Sequence[TrialSetting]) -> TrialSetting:
    """As it was asked for, with the credentials that a trial leaves out."""
    return _like(next(each for each in settings if _is_of(trial, each)), trial.config)


def _like(one: TrialSetting, other: Setting | LoaderConfig) -> TrialSetting:
    """The data set and batch size of ``one``, at the workers of ``other``."""
    prefetch = other.prefetch_factor if other.num_workers else None
    return replace(one, num_workers=other.num_workers, prefetch_factor=prefetch)


def _is_of(trial: Trial, setting: TrialSetting) -> bool:
    """Of the same data set, in batches of the same size."""
    return trial.url == redact(setting.url) and setting.batch_size in (
        None, trial.config.batch_size,
    )  # fmt: skip


def _loader_setting(setting: TrialSetting | LoaderConfig) -> Setting:
    prefetch = setting.prefetch_factor if setting.num_workers else None
    return Setting(setting.num_workers, prefetch or _PREFETCH)
