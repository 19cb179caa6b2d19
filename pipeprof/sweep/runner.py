"""A sweep that is under way: its trials, and what is told by all of them together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from pipeprof.analyze.sweep.conversion import weigh
from pipeprof.analyze.sweep.noise import Noise, noise_of, repeated, to_repeat, widened
from pipeprof.analyze.sweep.pairs import in_doubt
from pipeprof.analyze.sweep.recommend import choose
from pipeprof.model import SweepResult, SweepSpec
from pipeprof.store import SWEEP_FILE
from pipeprof.sweep.convert.convert import CopyPlaces, written
from pipeprof.sweep.grid import TrialSetting, grid
from pipeprof.sweep.guided import Guide, setting_of
from pipeprof.sweep.headspace import measure_headspace
from pipeprof.sweep.pairs import how_many, run_pairs, shorter
from pipeprof.sweep.progress import Watcher
from pipeprof.sweep.trial import Ran, run_script_trial, run_trial
from pipeprof.sweep.trial_summary import summarise_trial


class SweepRunner:
    """Runs the trials of a sweep, and saves `result` after each step."""

    def __init__(
        self,
        result: SweepResult,
        folder: Path,
        watcher: Watcher,
        storage_options: Mapping[str, Any] | None,
        deadline: float | None,
    ) -> None:
        self.result = result
        self.stopped: str | None = None
        self._folder, self._watcher, self._deadline = folder, watcher, deadline
        self._options = storage_options

    def run(self, settings: Sequence[TrialSetting], only: Collection[int] | None = None) -> None:
        """``only``: of the data as it is these splits, and at its best setting once more."""
        planned = len(settings) + (only is not None)
        self._watcher.begin(len(self.result.trials), planned)
        for number in range(len(self.result.trials), planned):
            if self._out_of_time():
                return
            as_it_is = settings[0].url
            setting = settings[number] if number < len(settings) else self._control(as_it_is)
            self._watcher.started(setting)
            self._one_more(setting, number, only if setting.url == as_it_is else None)
            self._watcher.finished(self.result.trials[-1])

    def guided(self, settings: Sequence[TrialSetting]) -> None:
        """Those of ``settings`` that can change the answer."""
        guide = Guide(settings, self._folder, self.result.environment.cores)
        self._watcher.begin(len(self.result.trials), len(settings))
        while (choice := guide.next(self.result.trials)) is not None:
            if self._out_of_time():
                return
            self._watcher.started(choice.setting)
            self._one_more(choice.setting, len(self.result.trials), None, choice.samples_per_s)
            self._watcher.finished(self.result.trials[-1])
        self._save(replace(self.result, untried=guide.untried(self.result.trials, {})))
        self.repeat(settings)
        untried = guide.untried(self.result.trials, self.result.noise)
        self._save(replace(self.result, untried=untried))

    def repeat(self, settings: Sequence[TrialSetting]) -> None:
        """Of each data set one trial, to tell by how much runs of one setting differ."""
        spec = self.result.spec
        for url in dict.fromkeys(trial.url for trial in self.result.trials):
            index = to_repeat(self.result.trials, url)
            if self.stopped or url in self.result.noise or index is None or self._out_of_time():
                continue
            setting = setting_of(self.result.trials[index], settings)
            self._watcher.repeating(setting)
            again = self._ran(spec, setting, "again", self._watcher.ticked)[0].throughput
            found = repeated(self.result.trials, index, again.samples_per_s, spec.trial_s)
            self._save_with_intervals(
                replace(self.result, noise={**self.result.noise, url: found}), url
            )

    def pair(self, settings: Sequence[TrialSetting]) -> None:
        """Of each data set its best setting and the next, where the trials leave their order in
        doubt."""
        trials, spec = self.result.trials, self.result.spec
        for url in dict.fromkeys(trial.url for trial in trials):
            doubt = in_doubt(trials, url, self._noise(url).half_width)
            pairs = how_many(spec, sum(trial.url == url for trial in trials))
            if self.stopped or url in self.result.paired or doubt is None or not pairs:
                continue
            if self._out_of_time():
                return
            one, other = (setting_of(trials[index], settings) for index in doubt)
            told = {**self.result.paired, url: run_pairs(self._brief, doubt, (one, other), pairs)}
            self._save(replace(self.result, paired=told, advice=choose(trials, spec, told)))

    def free(self, settings: Sequence[TrialSetting]) -> None:
        """Of each data set its best setting, once all have been tried."""
        result = self.result
        if self.stopped or result.spec.script is not None:
            return
        for advice in result.advice:
            if advice.url not in result.headspace:
                best = setting_of(result.trials[advice.best_trial], settings)
                found = measure_headspace(result.spec, best, self._options)
                told = {**self.result.headspace, advice.url: found}
                self._save(replace(self.result, headspace=told))

    def convert(self, places: CopyPlaces, keep: bool) -> None:
        """Write the copies that lack trials, and run these."""
        spec, found = self.result.spec, self.result.conversion
        assert found is not None
        each = len(grid(spec))
        there = [copy for copy in found.copies if not copy.skipped]
        wanted = [
            copy for index, copy in enumerate(there, start=1)
            if len(self.result.trials) < each * (index + 1)
        ]  # fmt: skip
        arguments = (spec, found, places, self._folder, wanted, keep, self._watcher.writing)
        with written(*arguments) as copies:
            there = [copy for copy in copies.conversion.copies if not copy.skipped]
            planned = 1 + each * (1 + len(there))
            self._save(replace(self.result, conversion=copies.conversion, planned=planned))
            urls = (places.url, *(places.of(copy) for copy in there))
            self.run(grid(spec, urls), copies.numbers)

    def _control(self, as_it_is: str) -> TrialSetting:
        """The data as it is at its best setting, as before: what differs then is noise."""
        config = self.result.trials[_baseline(self.result)].config
        assert config.batch_size is not None
        return TrialSetting(as_it_is, config.batch_size, config.num_workers, config.prefetch_factor)

    def _one_more(
        self,
        setting: TrialSetting,
        number: int,
        only: Collection[int] | None,
        predicted: float | None = None,
    ) -> None:
        result, name = self.result, f"trial-{number:03d}"
        profile, recording, traffic = self._ran(
            result.spec, setting, name, self._watcher.ticked, only
        )
        file_name = f"{name}.json"
        profile.save(self._folder / file_name)
        kind = "script" if result.spec.script else "loader"
        trial = summarise_trial(setting, profile, recording, traffic, file_name, kind)
        trial = replace(trial, predicted_samples_per_s=predicted)
        result = replace(
            result,
            trials=(*result.trials, trial),
            notes=tuple(dict.fromkeys((*result.notes, *profile.notes))),
        )
        if result.conversion is None:
            self._save_with_intervals(result, trial.url)
        else:
            advice, conversion = weigh(result)
            self._save(replace(result, advice=advice, conversion=conversion))

    def _brief(self, setting: TrialSetting, number: int, planned: int) -> float:
        """A run in a pair: samples/s."""
        self._watcher.pairing(setting, number, planned)
        profile, _, _ = self._ran(shorter(self.result.spec), setting, "pairs", ask=False)
        return profile.throughput.samples_per_s

    def _ran(
        self,
        spec: SweepSpec,
        setting: TrialSetting,
        name: str,
        tick: Callable[[float], None] = lambda share: None,
        only: Collection[int] | None = None,
        ask: bool = True,
    ) -> Ran:
        """``name``: of the log, where it is a script."""
        if spec.script is not None:
            return run_script_trial(spec, setting, self._folder / f"{name}.log")
        return run_trial(spec, setting, self._options, tick, only, ask)

    def _noise(self, url: str) -> Noise:
        own = [trial for trial in self.result.trials if trial.url == url]
        return noise_of(own, self.result.noise.get(url))

    def _save_with_intervals(self, result: SweepResult, url: str) -> None:
        """Those of the data set at ``url`` hold what its runs are now known to differ by."""
        self.result = result
        trials = widened(result.trials, url, self._noise(url))
        self._save(
            replace(result, trials=trials, advice=choose(trials, result.spec, result.paired))
        )

    def _out_of_time(self) -> bool:
        if self._deadline is not None and monotonic() >= self._deadline:
            self.stopped = "out of time"
        return self.stopped is not None

    def _save(self, result: SweepResult) -> None:
        result.save(self._folder / SWEEP_FILE)
        self.result = result


def _baseline(result: SweepResult) -> int:
    assert result.conversion is not None
    assert result.conversion.baseline is not None
    return result.conversion.baseline
