"""Runs the trials of a sweep one after another, and saves after each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic

from pipeprof.analyze.sweep.conversion import weigh
from pipeprof.analyze.sweep.noise import Noise, noise_of, repeated, to_repeat, widened
from pipeprof.analyze.sweep.pairs import in_doubt
from pipeprof.analyze.sweep.recommend import choose
from pipeprof.errors import PipeprofError
from pipeprof.model import SweepResult, SweepSpec
from pipeprof.store import SWEEP_FILE
from pipeprof.sweep.consumer import consumer_label
from pipeprof.sweep.convert.convert import written
from pipeprof.sweep.guided import Choice, Guide, setting_of
from pipeprof.sweep.own_script import recording_of, run_script
from pipeprof.sweep.pairs import how_many, run_pairs, shorter
from pipeprof.sweep.plan import SweepPlan, TrialSetting, grid
from pipeprof.sweep.progress import SweepListener
from pipeprof.sweep.trial import Ran, measure_headspace, run_trial
from pipeprof.sweep.trial_summary import summarise_trial


@dataclass(frozen=True)
class SweepOutcome:
    """What a sweep did, and why it ended."""

    result: SweepResult
    stopped: str | None = None
    """``"interrupted"`` or ``"out of time"``; ``None`` when all trials ran."""


def run_sweep(
    plan: SweepPlan, listener: SweepListener, max_s: float | None = None, keep: bool = False
) -> SweepOutcome:
    """Run the trials that ``plan.begun`` lacks. Ctrl-C, or ``max_s`` seconds gone, ends it after
    the last whole trial; what is done stays saved, and `plan_rest` plans the others. So it does
    when a trial raises. ``keep``: leave the copies of a conversion where they are.
    """
    deadline = monotonic() + max_s if max_s is not None else None
    runner = SweepRunner(plan, listener, deadline)
    try:
        if plan.spec.conversion is not None:
            runner.convert(keep)
        else:
            runner.tune()
    except KeyboardInterrupt:
        return SweepOutcome(runner.result, "interrupted")
    except PipeprofError:
        if not runner.result.trials:  # there is nothing to go on with
            with suppress(OSError):
                (plan.folder / SWEEP_FILE).unlink()
                plan.folder.rmdir()
        raise
    return SweepOutcome(runner.result, runner.stopped)


class SweepRunner:
    """Runs the trials of a sweep, and saves `result` after each step."""

    def __init__(self, plan: SweepPlan, listener: SweepListener, deadline: float | None) -> None:
        self.result = plan.begun
        self.stopped: str | None = None
        self._plan, self._listener, self._deadline = plan, listener, deadline
        self._settings = plan.settings

    def tune(self) -> None:
        """Try settings on each data set, and measure how much the answer is to be trusted."""
        if self._plan.spec.exhaustive:
            self._try(self._left(self._settings), len(self._settings))
        else:
            self._try_guided()
        self._repeat()
        self._pair()
        self._measure_headspace()

    def convert(self, keep: bool) -> None:
        """Write the copies that lack trials, and run these."""
        found, each = self.result.conversion, len(self._settings)
        assert found is not None
        if len(self.result.trials) >= self.result.planned:
            self._listener.begin(len(self.result.trials), self.result.planned)
            return
        there = [copy for copy in found.copies if not copy.skipped]
        wanted = [
            copy for index, copy in enumerate(there, start=1)
            if len(self.result.trials) < each * (index + 1)
        ]  # fmt: skip
        listen = self._listener.writing
        with written(self._plan, found, wanted, keep, listen) as (conversion, numbers):
            there = [copy for copy in conversion.copies if not copy.skipped]
            planned = 1 + each * (1 + len(there))
            self._save(replace(self.result, conversion=conversion, planned=planned))
            urls = (*self._plan.urls, *map(self._plan.copy_url, there))
            choices = self._left(grid(self._plan.spec, urls), control=True)
            self._try(choices, planned, numbers)

    def _try(
        self, choices: Iterable[Choice], planned: int, only: Collection[int] | None = None
    ) -> None:
        """``only``: of the data as they are, these splits."""
        self._listener.begin(len(self.result.trials), planned)
        for choice in choices:
            if self._out_of_time():
                return
            self._listener.started(choice.setting)
            as_they_are = choice.setting.url == self._settings[0].url
            self._one_more(choice, only if as_they_are else None)
            self._listener.finished(self.result.trials[-1])

    def _left(self, settings: tuple[TrialSetting, ...], control: bool = False) -> Iterator[Choice]:
        """Those of ``settings`` not yet tried. As a ``control``, the data as they are at their best
        setting once more: what differs then is noise."""
        yield from map(Choice, settings[len(self.result.trials) :])
        if control and len(self.result.trials) == len(settings):
            found = self.result.conversion
            assert found is not None
            assert found.baseline is not None
            yield Choice(setting_of(self.result.trials[found.baseline], self._settings))

    def _try_guided(self) -> None:
        """Those of the settings that can change the answer."""
        guide = Guide(self._settings, self._plan.folder, self.result.environment.cores)
        choices = iter(lambda: guide.next(self.result.trials), None)
        self._try(choices, len(self._settings))
        if self.stopped:
            return
        self._save(replace(self.result, untried=guide.untried(self.result.trials, {})))
        self._repeat()
        untried = guide.untried(self.result.trials, self.result.noise)
        self._save(replace(self.result, untried=untried))

    def _repeat(self) -> None:
        """Of each data set one trial, to tell by how much runs of one setting differ."""
        spec = self._plan.spec
        for url in dict.fromkeys(trial.url for trial in self.result.trials):
            index = to_repeat(self.result.trials, url)
            if self.stopped or url in self.result.noise or index is None or self._out_of_time():
                continue
            setting = setting_of(self.result.trials[index], self._settings)
            self._listener.repeating(setting)
            again = self._run(spec, setting, "again", self._listener.ticked)[0].throughput
            found = repeated(self.result.trials, index, again.samples_per_s, spec.trial_s)
            noise = {**self.result.noise, url: found}
            self._save_with_intervals(replace(self.result, noise=noise), url)

    def _pair(self) -> None:
        """Of each data set its best setting and the next, where the trials leave their order in
        doubt."""
        trials, spec = self.result.trials, self._plan.spec
        for url in dict.fromkeys(trial.url for trial in trials):
            doubt = in_doubt(trials, url, self._noise(url).half_width)
            pairs = how_many(spec, sum(trial.url == url for trial in trials))
            if self.stopped or url in self.result.paired or doubt is None or not pairs:
                continue
            if self._out_of_time():
                return
            one, other = (setting_of(trials[index], self._settings) for index in doubt)
            found = run_pairs(self._brief, doubt, (one, other), pairs)
            paired = {**self.result.paired, url: found}
            self._save(replace(self.result, paired=paired, advice=choose(trials, spec, paired)))

    def _measure_headspace(self) -> None:
        """Of each data set its best setting, once all have been tried."""
        if self.stopped or self._plan.spec.script is not None:
            return
        for advice in self.result.advice:
            if advice.url not in self.result.headspace:
                best = setting_of(self.result.trials[advice.best_trial], self._settings)
                found = measure_headspace(self._plan.spec, best, self._plan.storage_options)
                headspace = {**self.result.headspace, advice.url: found}
                self._save(replace(self.result, headspace=headspace))

    def _one_more(self, choice: Choice, only: Collection[int] | None) -> None:
        name, spec = f"trial-{len(self.result.trials):03d}", self._plan.spec
        profile, recording, traffic = self._run(
            spec, choice.setting, name, self._listener.ticked, only
        )
        profile.save(self._plan.folder / f"{name}.json")
        kind = "script" if spec.script else "loader"
        row = summarise_trial(choice.setting, profile, recording, traffic, f"{name}.json", kind)
        row = replace(row, predicted_samples_per_s=choice.samples_per_s)
        notes = tuple(dict.fromkeys((*self.result.notes, *profile.notes)))
        result = replace(self.result, trials=(*self.result.trials, row), notes=notes)
        if result.conversion is None:
            self._save_with_intervals(result, row.url)
        else:
            advice, conversion = weigh(result)
            self._save(replace(result, advice=advice, conversion=conversion))

    def _brief(self, setting: TrialSetting, number: int, planned: int) -> float:
        """A run in a pair: samples/s."""
        self._listener.pairing(setting, number, planned)
        profile, _, _ = self._run(shorter(self._plan.spec), setting, "pairs", ask=False)
        return profile.throughput.samples_per_s

    def _run(
        self,
        spec: SweepSpec,
        setting: TrialSetting,
        name: str,
        tick: Callable[[float], None] = lambda share: None,
        only: Collection[int] | None = None,
        ask: bool = True,
    ) -> Ran:
        """``name``: of the log, where it is a script."""
        if spec.script is not None:  # takes as long as the script does
            log = self._plan.folder / f"{name}.log"
            profile = run_script(spec.script, setting, spec.threshold, log)
            environment = replace(profile.environment, accelerator=consumer_label(spec))
            profile = replace(profile, environment=environment)
            return profile, recording_of(profile), None
        return run_trial(spec, setting, self._plan.storage_options, tick, only, ask)

    def _noise(self, url: str) -> Noise:
        own = [trial for trial in self.result.trials if trial.url == url]
        return noise_of(own, self.result.noise.get(url))

    def _save_with_intervals(self, result: SweepResult, url: str) -> None:
        """Those of the data set at ``url`` hold what its runs are now known to differ by."""
        self.result = result
        trials = widened(result.trials, url, self._noise(url))
        advice = choose(trials, result.spec, result.paired)
        self._save(replace(result, trials=trials, advice=advice))

    def _out_of_time(self) -> bool:
        if self._deadline is not None and monotonic() >= self._deadline:
            self.stopped = "out of time"
        return self.stopped is not None

    def _save(self, result: SweepResult) -> None:
        result.save(self._plan.folder / SWEEP_FILE)
        self.result = result
