"""Group the trials of a sweep by data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeprof.model import SweepAdvice, SweepResult, Trial
from pipeprof.report.text import shorten

_T = TypeVar("_T")
_LONGEST_NAME, _LONGEST_STORAGE = 40, 20
"""Most characters of a data set's label, and of a storage in the name of a copy."""


@dataclass(frozen=True)
class DataSet:
    """One URL of a sweep and its trials."""

    url: str
    label: str
    """The name in the report: the format or the copy, or the URL where those are not unique."""
    trials: tuple[Trial, ...]
    """The trials in the order in which they ran."""
    best: Trial
    """The trial of the advised setting; the fastest while there is no advice."""
    advice: SweepAdvice | None
    exists: bool = True
    """False for a copy that the sweep removed."""


def data_sets(sweep: SweepResult) -> list[DataSet]:
    """Return the data sets that have a trial, in the order of the sweep."""
    by_url: dict[str, list[Trial]] = {}
    for trial in sweep.trials:
        by_url.setdefault(trial.url, []).append(trial)
    formats = [trials[0].format for trials in by_url.values()]
    copies = copy_names(sweep)
    kept = sweep.conversion is not None and sweep.conversion.kept
    advice = {advice.url: advice for advice in sweep.advice}
    grouped = []
    for url, trials in by_url.items():
        unique = formats.count(trials[0].format) == 1 or bool(copies)
        copy = copies.get(trials[0].data_url)
        name = copy or (trials[0].format if unique else url)
        by = trials[0].by_reader if copies else ""
        label = shorten(name + by, _LONGEST_NAME)
        advised = trial_at(sweep, advice[url].best_trial) if url in advice else None
        best = advised or max(trials, key=lambda trial: trial.samples_per_s)
        exists = kept or copy is None
        grouped.append(DataSet(url, label, tuple(trials), best, advice.get(url), exists))
    return grouped


def own_data_sets(sweep: SweepResult) -> list[DataSet]:
    """Return the user's own data sets, without the copies of a conversion."""
    copies = copy_names(sweep)
    return [data for data in data_sets(sweep) if data.trials[0].data_url not in copies]


def sets_with(sweep: SweepResult, found: Mapping[str, _T]) -> list[tuple[DataSet, _T]]:
    """Return the data sets with what was found of them, where something was."""
    return [(data, found[data.url]) for data in data_sets(sweep) if data.url in found]


def label_of(trial: Trial, candidates: Sequence[DataSet]) -> str:
    """Return the label of the trial's data set."""
    return next((data.label for data in candidates if data.url == trial.url), trial.format)


def fastest(sweep: SweepResult) -> Trial:
    """Return the trial with the most samples/s; the sweep must have one."""
    return max(sweep.trials, key=lambda trial: trial.samples_per_s)


def trial_at(sweep: SweepResult, index: int | None) -> Trial | None:
    """Return the trial at ``index``; ``None`` where a damaged file names no such trial."""
    if index is None or not 0 <= index < len(sweep.trials):
        return None
    return sweep.trials[index]


def copy_names(sweep: SweepResult) -> dict[str, str]:
    """Return URL → name of each copy that a conversion made, with its storage if there are
    several."""
    copies = sweep.conversion.copies if sweep.conversion else ()
    several = len({copy.storage for copy in copies}) > 1
    return {
        copy.url: copy.name + several * f" on {shorten(copy.storage, _LONGEST_STORAGE)}"
        for copy in copies
    }
