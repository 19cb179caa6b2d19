"""A sweep's trials, data set by data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeprof.model import SweepAdvice, SweepResult, Trial
from pipeprof.report.text import shorten

_NAME = 40
"""Most columns for the name of a data set in a table."""


@dataclass(frozen=True)
class DataSet:
    """The trials of one URL, in the order in which they ran."""

    url: str
    label: str
    trials: tuple[Trial, ...]
    best: Trial
    advice: SweepAdvice | None


def data_sets(sweep: SweepResult) -> list[DataSet]:
    """The URLs that have a trial, in the order of the sweep."""
    by_url: dict[str, list[Trial]] = {}
    for trial in sweep.trials:
        by_url.setdefault(trial.url, []).append(trial)
    formats = [trials[0].format for trials in by_url.values()]
    copies = _copies(sweep)
    advice = {advice.url: advice for advice in sweep.advice}
    found = []
    for url, trials in by_url.items():
        unique = formats.count(trials[0].format) == 1 or bool(copies)
        label = shorten(copies.get(url) or (trials[0].format if unique else url), _NAME)
        named = trial_at(sweep, advice[url].best_trial) if url in advice else None
        # without advice the fastest so far
        best = named or max(trials, key=lambda trial: trial.samples_per_s)
        found.append(DataSet(url, label, tuple(trials), best, advice.get(url)))
    return found


def own_data_sets(sweep: SweepResult) -> list[DataSet]:
    """Those that were there before: without the copies of a conversion."""
    copies = _copies(sweep)
    return [data for data in data_sets(sweep) if data.url not in copies]


def label_of(trial: Trial, found: Sequence[DataSet]) -> str:
    return next((data.label for data in found if data.url == trial.url), trial.format)


def fastest(sweep: SweepResult) -> Trial:
    return max(sweep.trials, key=lambda trial: trial.samples_per_s)


def trial_at(sweep: SweepResult, index: int | None) -> Trial | None:
    """A trial, if the file is what it should be."""
    if index is None or not 0 <= index < len(sweep.trials):
        return None
    return sweep.trials[index]


def _copies(sweep: SweepResult) -> dict[str, str]:
    """URL → name of each copy of a conversion."""
    copies = sweep.conversion.copies if sweep.conversion else ()
    several = len({copy.storage for copy in copies}) > 1
    return {copy.url: copy.name + several * f" on {copy.storage}" for copy in copies}
