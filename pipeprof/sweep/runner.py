"""Run the trials of a sweep one after another, and save the result after each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from pipeprof.analyze.sweep.conversion import evaluate
from pipeprof.analyze.sweep.multiples import with_multiples
from pipeprof.analyze.sweep.noise import Noise, noise_of, repeated, to_repeat, widened
from pipeprof.analyze.sweep.pairs import in_doubt
from pipeprof.analyze.sweep.recommend import cheaper_of, choose, is_decided
from pipeprof.errors import PipeprofError
from pipeprof.model import (
    Copy,
    PairedRuns,
    SweepAdvice,
    SweepResult,
    SweepSpec,
    Trial,
)
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE
from pipeprof.sweep.consumer import consumer_label
from pipeprof.sweep.convert.convert import written_copies
from pipeprof.sweep.engines.elsewhere import run_elsewhere, run_pairs_elsewhere
from pipeprof.sweep.engines.engine import HERE, other_node
from pipeprof.sweep.guided import Choice, Guide, setting_of
from pipeprof.sweep.measurements import measurements
from pipeprof.sweep.own_script import recording_of, run_script
from pipeprof.sweep.pairs import pair_count, paired_spec, run_pairs
from pipeprof.sweep.plan import SweepPlan, TrialSetting
from pipeprof.sweep.progress import SweepListener
from pipeprof.sweep.trial import TrialRun, run_trial
from pipeprof.sweep.trial_summary import summarise_trial


@dataclass(frozen=True)
class SweepOutcome:
    """The result of a sweep, and why it ended."""

    result: SweepResult
    stopped: str | None = None
    """``"interrupted"`` or ``"out of time"``; None when all trials ran."""


def run_sweep(
    plan: SweepPlan, listener: SweepListener, max_s: float | None = None, keep: bool = False
) -> SweepOutcome:
    """Run the trials that ``plan.initial`` lacks.

    Ctrl-C ends the sweep, and after ``max_s`` seconds no other trial begins. Whole trials stay
    saved, also after an error, and `plan_remaining` plans the others. ``keep`` leaves the copies of
    a conversion where they are.
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
        if not runner.result.trials:  # there is nothing to resume
            with suppress(OSError):
                (plan.folder / SWEEP_FILE).unlink()
                plan.folder.rmdir()
        raise
    return SweepOutcome(runner.result, runner.stopped)


class SweepRunner:
    """Runs the trials of a sweep, and saves `result` after each step."""

    def __init__(self, plan: SweepPlan, listener: SweepListener, deadline: float | None) -> None:
        self.result = plan.initial
        self.stopped: str | None = None
        self._plan, self._listener, self._deadline = plan, listener, deadline
        self._settings = plan.settings()

    def tune(self) -> None:
        """Try settings on each data set, and measure the uncertainty of the best one."""
        guide = self._guide()
        self._try_all(guide)
        self._repeat()
        if not self.stopped:
            untried = guide.untried(self.result.trials, self.result.noise)
            self._save(replace(self.result, untried=untried))
        self._run_pairs()
        self._measure_at_best()

    def convert(self, keep: bool) -> None:
        """Write the copies that lack trials or measurements, and run these. At last the best
        setting of the original data is tried again, which shows the noise between runs."""
        begun = self.result.conversion
        assert begun is not None
        copies = [copy for copy in begun.copies if not copy.skipped]
        pending = self._pending(copies)
        if self.result.finished and not pending:
            self._listener.begin(len(self.result.trials), self.result.planned)
            return
        lacking = [each for each in copies if pending.intersection(self._plan.read_urls(each))]
        tick = self._listener.writing
        with written_copies(self._plan, begun, lacking, keep, tick) as (conversion, splits):
            copies = [copy for copy in conversion.copies if not copy.skipped]
            self._settings = self._plan.settings(copies)
            planned = 1 + len(self._settings)
            self._save(replace(self.result, conversion=conversion, planned=planned))
            self._try_all(self._guide(), splits)
            self._try_control(splits)
            self._measure_at_best()

    def _pending(self, copies: Sequence[Copy]) -> set[str]:
        """Return the URLs of which a trial or a measurement is still to run."""
        self._settings = self._plan.settings(copies)
        pending = self._guide().pending(self._searched)
        wanted = measurements(self._plan.spec)
        return pending | {
            each.url for each in self._settings
            if not all(measured.has(self.result, redact(each.url)) for measured in wanted)
        }  # fmt: skip

    def _guide(self) -> Guide:
        spec, cores = self._plan.spec, self.result.environment.cores
        base = self._plan.urls[0] if spec.conversion else None
        return Guide(self._settings, self._plan.folder, cores, spec.exhaustive, base)

    @property
    def _searched(self) -> tuple[Trial, ...]:
        """The trials without the control."""
        conversion = self.result.conversion
        return self.result.trials[: conversion.control if conversion else None]

    def _try_all(self, guide: Guide, splits: Collection[int] | None = None) -> None:
        """Try the settings that can change the answer, and predict the others. ``splits`` limits
        what is read of the original data."""
        self._listener.begin(len(self.result.trials), self.result.planned)
        self._try(iter(lambda: guide.next(self._searched), None), splits)
        if not self.stopped:
            untried = guide.untried(self._searched, {})
            self._save(replace(self.result, untried=untried))

    def _try_control(self, splits: Collection[int]) -> None:
        """Try the best setting of the original data a second time, unless that has been done."""
        conversion, control = self.result.conversion, len(self.result.trials)
        assert conversion is not None
        if self.stopped or conversion.control is not None or self._out_of_time():
            return
        assert conversion.baseline is not None
        best = setting_of(self.result.trials[conversion.baseline], self._settings)
        self.result = replace(self.result, conversion=replace(conversion, control=control))
        self._try([Choice(best)], splits)

    def _try(self, choices: Iterable[Choice], splits: Collection[int] | None = None) -> None:
        """Run a trial of each choice."""
        for choice in choices:
            if self._out_of_time():
                return
            self._listener.started(choice.setting)
            is_original = choice.setting.url in self._plan.urls
            self._try_one(choice, splits if is_original else None)
            self._listener.finished(self.result.trials[-1])

    def _repeat(self) -> None:
        """Repeat one trial of each data set, to measure how much runs of one setting differ."""
        spec = self._plan.spec
        for url in dict.fromkeys(trial.url for trial in self.result.trials):
            index = to_repeat(self.result.trials, url)
            if self.stopped or url in self.result.noise or index is None or self._out_of_time():
                continue
            setting = setting_of(self.result.trials[index], self._settings)
            self._listener.repeating(setting)
            again = self._run(spec, setting, "again", self._listener.ticked)[0].throughput
            run = repeated(self.result.trials, index, again.samples_per_s, spec.trial_s)
            noise = {**self.result.noise, url: run}
            self._save_with_intervals(replace(self.result, noise=noise), url)

    def _run_pairs(self) -> None:
        """Compare the two best settings of each data set, where the trials leave a doubt."""
        trials, spec = self.result.trials, self._plan.spec
        for url in dict.fromkeys(trial.url for trial in trials):
            doubt = in_doubt(trials, url, self._noise(url).half_width)
            pairs = pair_count(spec, sum(trial.url == url for trial in trials))
            if self.stopped or url in self.result.paired or doubt is None or not pairs:
                continue
            if self._out_of_time():
                return
            one, other = (setting_of(trials[index], self._settings) for index in doubt)
            until = partial(is_decided, cheaper=cheaper_of(trials, doubt))
            runs = self._pairs(doubt, (one, other), pairs, until)
            paired = {**self.result.paired, url: runs}
            advice = self._advise(trials, paired)
            self._save(replace(self.result, paired=paired, advice=advice))

    def _pairs(
        self,
        doubt: tuple[int, int],
        settings: tuple[TrialSetting, TrialSetting],
        pairs: int,
        until: Callable[[PairedRuns], bool],
    ) -> PairedRuns:
        plan = self._plan
        if plan.engine is HERE:
            return run_pairs(self._run_briefly, doubt, settings, pairs, until)
        self._listener.pairing(settings[0], 0, 2 * pairs)
        # in one call: a job of Slurm may wait for long
        return plan.engine.call(
            run_pairs_elsewhere, plan.spec, plan.storage_options, doubt, settings, pairs, until
        )

    def _measure_at_best(self) -> None:
        """Measure what the spec asks for besides trials, at the best setting of each data set."""
        for measurement in measurements(self._plan.spec):
            for advice in self.result.advice:
                if self.stopped or measurement.has(self.result, advice.url):
                    continue
                if measurement.optional and self._out_of_time():
                    return
                trial = self.result.trials[advice.best_trial]
                setting = setting_of(trial, self._settings)
                self._save(measurement.add(self.result, self._plan, setting, trial))

    def _try_one(self, choice: Choice, splits: Collection[int] | None) -> None:
        """Run one trial, and save its profile and its row of the result."""
        name, spec = f"trial-{len(self.result.trials):03d}", self._plan.spec
        profile, recording, traffic = self._run(
            spec, choice.setting, name, self._listener.ticked, splits
        )
        profile.save(self._plan.folder / f"{name}.json")
        kind = "script" if spec.script else "loader"
        row = summarise_trial(choice.setting, profile, recording, traffic, f"{name}.json", kind)
        row = replace(row, predicted_samples_per_s=choice.samples_per_s)
        moved = other_node(self.result.environment, profile.environment)
        notes = tuple(dict.fromkeys((*self.result.notes, *profile.notes, *moved)))
        result = replace(self.result, trials=(*self.result.trials, row), notes=notes)
        if result.conversion is None:
            self._save_with_intervals(result, row.url)
        else:
            advice, conversion = evaluate(result)
            self._save(replace(result, advice=advice, conversion=conversion))

    def _run_briefly(self, setting: TrialSetting, number: int, planned: int) -> float:
        """Run a setting for the short time of a pair, and return its samples/s."""
        self._listener.pairing(setting, number, planned)
        profile, *_ = self._run(paired_spec(self._plan.spec), setting, "pairs", lone_requests=False)
        return profile.throughput.samples_per_s

    def _run(
        self,
        spec: SweepSpec,
        setting: TrialSetting,
        name: str,
        tick: Callable[[float], None] = lambda share: None,
        splits: Collection[int] | None = None,
        lone_requests: bool = True,
    ) -> TrialRun:
        """Run a setting for the times of ``spec``; a script runs to its end, and has a log."""
        if spec.script is not None:
            log = self._plan.folder / f"{name}.log"
            profile = run_script(spec.script, setting, spec.threshold, log)
            environment = replace(profile.environment, accelerator=consumer_label(spec))
            profile = replace(profile, environment=environment)
            return profile, recording_of(profile), None
        options = self._plan.storage_options
        if self._plan.engine is HERE:
            return run_trial(spec, setting, options, tick, splits, lone_requests)
        return self._plan.engine.call(run_elsewhere, spec, setting, options, splits, lone_requests)

    def _noise(self, url: str) -> Noise:
        own = [trial for trial in self.result.trials if trial.url == url]
        return noise_of(own, self.result.noise.get(url))

    def _save_with_intervals(self, result: SweepResult, url: str) -> None:
        """Save ``result``, with the intervals of ``url`` widened by the noise between runs."""
        self.result = result
        trials = widened(result.trials, url, self._noise(url))
        advice = self._advise(trials, result.paired)
        self._save(replace(result, trials=trials, advice=advice))

    def _advise(
        self, trials: Sequence[Trial], paired: Mapping[str, PairedRuns]
    ) -> tuple[SweepAdvice, ...]:
        advice = choose(trials, self._plan.spec, paired)
        noise = {each.url: self._noise(each.url).half_width for each in advice}
        return with_multiples(advice, trials, noise)

    def _out_of_time(self) -> bool:
        if self._deadline is not None and monotonic() >= self._deadline:
            self.stopped = "out of time"
        return self.stopped is not None

    def _save(self, result: SweepResult) -> None:
        result.save(self._plan.folder / SWEEP_FILE)
        self.result = result
