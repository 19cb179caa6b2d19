"""Runs the trials of a sweep one after another, and saves after each."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from pipeprof.analyze.choose import choose
from pipeprof.analyze.gains import weigh
from pipeprof.errors import OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.loaders.dataset import open_dataset
from pipeprof.measure.environment import read_environment
from pipeprof.model import SweepResult, SweepSpec, Trial
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE, load
from pipeprof.sweep.convert import Places, plan_conversion, written
from pipeprof.sweep.free import if_data_were_free
from pipeprof.sweep.grid import Setting, grid
from pipeprof.sweep.guided import Guide, setting_of
from pipeprof.sweep.references import Reference
from pipeprof.sweep.summarise import summarise_trial
from pipeprof.sweep.trial import check_own, consumer_label, run_script_trial, run_trial


class Watcher(Protocol):
    """Told how a sweep goes; `pipeprof.cli.sweep` draws it."""

    def begin(self, done: int, planned: int) -> None: ...

    def started(self, setting: Setting) -> None: ...

    def ticked(self, share: float) -> None:
        """Of the running trial."""
        ...

    def finished(self, trial: Trial) -> None: ...

    def writing(self, name: str, share: float) -> None:
        """A copy of the sample, before the trials."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What a sweep did, and why it ended."""

    result: SweepResult
    stopped: str | None = None
    """``"interrupted"`` or ``"out of time"``; ``None`` when all trials ran."""


def new_folder(parent: Path = Path("pipeprof-results")) -> Path:
    """``pipeprof-results/sweep-20260131-142501``, or the next free name."""
    name = datetime.now().strftime("sweep-%Y%m%d-%H%M%S")
    folder, again = parent / name, 1
    while folder.exists():
        again += 1
        folder = parent / f"{name}-{again}"
    return folder


def begin(
    spec: SweepSpec,
    folder: Path,
    urls: tuple[str, ...] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    storages: tuple[str, ...] | None = None,
) -> SweepResult:
    """A sweep with no trial yet, saved in ``folder``; nothing is written when it cannot run.

    ``urls``, ``storages``: the spec's, with credentials.
    Raises `UsageError`, `StorageError`, `FormatError`, `OutputError`.
    """
    planned, conversion = len(grid(spec)), None
    label = consumer_label(spec)
    if spec.transform is not None:
        Reference(spec.transform).load()
    if spec.own is not None:
        check_own(spec)
    for url in () if spec.own else urls or spec.urls:
        data = open_dataset(
            url,
            columns=spec.columns,
            storage_options=_options(spec, storage_options),
            on_error=spec.on_error,
        )
    if spec.conversion is not None:
        places = _places(spec, urls, storages, storage_options)
        conversion = plan_conversion(spec.conversion, places, data, folder)
        planned = 1 + planned * (1 + len(conversion.copies))
    if (folder / SWEEP_FILE).exists():
        raise UsageError(
            f"{folder} holds a sweep already; go on with --resume {folder}, or choose another --out"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {os.strerror(error.errno or 0)}.") from None
    result = SweepResult(
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        spec=spec,
        environment=read_environment(label),
        planned=planned,
        conversion=conversion,
    )
    result.save(folder / SWEEP_FILE)
    return result


def resume(folder: Path) -> SweepResult:
    """The sweep saved in ``folder``. Raises `ProfileError`."""
    result = load(folder / SWEEP_FILE)
    if not isinstance(result, SweepResult):
        raise ProfileError(f"{folder / SWEEP_FILE} is a profile, not a sweep.")
    return result


def go_on(
    result: SweepResult,
    folder: Path,
    watcher: Watcher,
    urls: tuple[str, ...] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    max_s: float | None = None,
    storages: tuple[str, ...] | None = None,
    keep: bool = False,
) -> Outcome:
    """Run the trials that ``result`` lacks. Ctrl-C, or ``max_s`` seconds gone, ends it after the
    last whole trial; what is done stays saved, and `resume` goes on. So it does when a trial
    raises.

    ``urls``, ``storages``: the spec's, with credentials. ``keep``: leave the copies of a
    conversion where they are.
    """
    deadline = monotonic() + max_s if max_s is not None else None
    going = _Going(result, folder, watcher, storage_options, deadline)
    try:
        if result.conversion is None:
            settings = grid(result.spec, urls)
            (going.run if result.spec.exhaustive else going.guided)(settings)
            going.free(settings)
        elif len(result.trials) < result.planned:
            going.convert(_places(result.spec, urls, storages, storage_options), keep)
        else:
            watcher.begin(len(result.trials), result.planned)
    except KeyboardInterrupt:
        return Outcome(going.result, "interrupted")
    except PipeprofError:
        if not going.result.trials:
            _remove_empty(folder)
        raise
    return Outcome(going.result, going.stopped)


class _Going:
    """A sweep that is under way."""

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
        self._options = _options(result.spec, storage_options)

    def run(self, settings: Sequence[Setting], only: Collection[int] | None = None) -> None:
        """``only``: of the data as it is these splits, and at its best setting once more."""
        planned = len(settings) + (only is not None)
        self._watcher.begin(len(self.result.trials), planned)
        for number in range(len(self.result.trials), planned):
            if self._deadline is not None and monotonic() >= self._deadline:
                self.stopped = "out of time"
                return
            as_it_is = settings[0].url
            setting = settings[number] if number < len(settings) else self._control(as_it_is)
            self._watcher.started(setting)
            self._one_more(setting, number, only if setting.url == as_it_is else None)
            self._watcher.finished(self.result.trials[-1])

    def guided(self, settings: Sequence[Setting]) -> None:
        """Those of ``settings`` that can change the answer."""
        guide = Guide(settings, self._folder, self.result.environment.cores)
        self._watcher.begin(len(self.result.trials), len(settings))
        while (choice := guide.next(self.result.trials)) is not None:
            if self._deadline is not None and monotonic() >= self._deadline:
                self.stopped = "out of time"
                return
            self._watcher.started(choice.setting)
            self._one_more(choice.setting, len(self.result.trials), None, choice.samples_per_s)
            self._watcher.finished(self.result.trials[-1])
        self._save(replace(self.result, untried=guide.untried(self.result.trials)))

    def free(self, settings: Sequence[Setting]) -> None:
        """Of each data set its best setting, once all have been tried."""
        result = self.result
        if self.stopped or result.spec.script is not None:
            return
        for advice in result.advice:
            if advice.url not in result.headspace:
                best = setting_of(result.trials[advice.best_trial], settings)
                found = if_data_were_free(result.spec, best, self._options)
                told = {**self.result.headspace, advice.url: found}
                self._save(replace(self.result, headspace=told))

    def convert(self, places: Places, keep: bool) -> None:
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

    def _control(self, as_it_is: str) -> Setting:
        """The data as it is at its best setting, as before: what differs then is noise."""
        config = self.result.trials[_baseline(self.result)].config
        assert config.batch_size is not None
        return Setting(as_it_is, config.batch_size, config.num_workers, config.prefetch_factor)

    def _one_more(
        self,
        setting: Setting,
        number: int,
        only: Collection[int] | None,
        predicted: float | None = None,
    ) -> None:
        result = self.result
        name, tick = f"trial-{number:03d}", self._watcher.ticked
        if result.spec.script is not None:
            ran = run_script_trial(result.spec, setting, self._folder / f"{name}.log")
        else:
            ran = run_trial(result.spec, setting, self._options, tick, only)
        profile, recording, traffic = ran
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
            advice = choose(result.trials, result.spec)
            self._save(replace(result, advice=advice))
        else:
            advice, conversion = weigh(result)
            self._save(replace(result, advice=advice, conversion=conversion))

    def _save(self, result: SweepResult) -> None:
        result.save(self._folder / SWEEP_FILE)
        self.result = result


def _baseline(result: SweepResult) -> int:
    assert result.conversion is not None
    assert result.conversion.baseline is not None
    return result.conversion.baseline


def _places(
    spec: SweepSpec,
    urls: tuple[str, ...] | None,
    storages: tuple[str, ...] | None,
    options: Mapping[str, Any] | None,
) -> Places:
    assert spec.conversion is not None
    asked = spec.conversion.storages
    given = storages or asked
    if tuple(redact(storage) for storage in given) != asked:
        raise UsageError(f"this sweep writes to {', '.join(asked)}; give that --storage, or none")
    return Places((urls or spec.urls)[0], asked, given, _options(spec, options))


def _options(spec: SweepSpec, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What stores are opened with: the client is saved, all else is given anew."""
    return {**(given or {}), "s3_client": spec.s3_client} if spec.s3_client else given


def _remove_empty(folder: Path) -> None:
    """A sweep that never had a trial is nothing to go on with."""
    with suppress(OSError):
        (folder / SWEEP_FILE).unlink()
        folder.rmdir()


def same_urls(spec: SweepSpec, urls: tuple[str, ...]) -> bool:
    """Whether ``urls`` are those of ``spec``, credentials aside."""
    return tuple(redact(url) for url in urls) == spec.urls
