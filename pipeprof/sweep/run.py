"""Runs the trials of a sweep one after another, and saves after each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from pipeprof.analyze.choose import choose
from pipeprof.errors import OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.loaders.dataset import open_dataset
from pipeprof.measure.environment import read_environment
from pipeprof.model import SweepResult, SweepSpec, Trial
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE, load
from pipeprof.sweep.grid import Setting, grid
from pipeprof.sweep.references import Reference
from pipeprof.sweep.trial import make_consumer, run_trial, summarise_trial


class Watcher(Protocol):
    """Told how a sweep goes; `pipeprof.cli.sweep` draws it."""

    def begin(self, done: int, planned: int) -> None: ...

    def started(self, setting: Setting) -> None: ...

    def ticked(self, share: float) -> None:
        """Of the running trial."""
        ...

    def finished(self, trial: Trial) -> None: ...


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
) -> SweepResult:
    """A sweep with no trial yet, saved in ``folder``; nothing is written when it cannot run.

    ``urls``: the spec's, with credentials.
    Raises `UsageError`, `StorageError`, `FormatError`, `OutputError`.
    """
    planned = len(grid(spec))
    label = make_consumer(spec, spec.batch_sizes[0]).label
    if spec.transform is not None:
        Reference(spec.transform).load()
    for url in urls or spec.urls:
        open_dataset(url, columns=spec.columns, storage_options=storage_options)
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
) -> Outcome:
    """Run the trials that ``result`` lacks. Ctrl-C, or ``max_s`` seconds gone, ends it after the
    last whole trial; what is done stays saved, and `resume` goes on. So it does when a trial
    raises.

    ``urls``: the spec's, with credentials.
    """
    settings = grid(result.spec, urls)
    deadline = monotonic() + max_s if max_s is not None else None
    watcher.begin(len(result.trials), len(settings))
    for number in range(len(result.trials), len(settings)):
        if deadline is not None and monotonic() >= deadline:
            return Outcome(result, "out of time")
        try:
            watcher.started(settings[number])
            result = _one_more(result, settings[number], number, folder, watcher, storage_options)
        except KeyboardInterrupt:
            return Outcome(result, "interrupted")
        except PipeprofError:
            if not result.trials:
                _remove_empty(folder)
            raise
        watcher.finished(result.trials[-1])
    return Outcome(result)


def _one_more(
    result: SweepResult,
    setting: Setting,
    number: int,
    folder: Path,
    watcher: Watcher,
    storage_options: Mapping[str, Any] | None,
) -> SweepResult:
    profile, recording = run_trial(result.spec, setting, storage_options, watcher.ticked)
    file_name = f"trial-{number:03d}.json"
    profile.save(folder / file_name)
    trials = (*result.trials, summarise_trial(setting, profile, recording, file_name))
    result = replace(
        result,
        trials=trials,
        advice=choose(trials, result.spec.transform),
        notes=tuple(dict.fromkeys((*result.notes, *profile.notes))),
    )
    result.save(folder / SWEEP_FILE)
    return result


def _remove_empty(folder: Path) -> None:
    """A sweep that never had a trial is nothing to go on with."""
    with suppress(OSError):
        (folder / SWEEP_FILE).unlink()
        folder.rmdir()


def same_urls(spec: SweepSpec, urls: tuple[str, ...]) -> bool:
    """Whether ``urls`` are those of ``spec``, credentials aside."""
    return tuple(redact(url) for url in urls) == spec.urls
