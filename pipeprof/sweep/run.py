"""Runs the trials of a sweep one after another, and saves after each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any

from pipeprof.errors import OutputError, PipeprofError, ProfileError, UsageError
from pipeprof.loaders.dataset.dataset import open_dataset
from pipeprof.measure.environment import read_environment
from pipeprof.model import SweepResult, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE, load
from pipeprof.sweep.convert.convert import CopyPlaces, plan_conversion
from pipeprof.sweep.grid import grid
from pipeprof.sweep.progress import Watcher
from pipeprof.sweep.references import Reference
from pipeprof.sweep.runner import SweepRunner
from pipeprof.sweep.trial import check_own, consumer_label


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


def run_remaining_trials(
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
    runner = SweepRunner(result, folder, watcher, _options(result.spec, storage_options), deadline)
    try:
        if result.conversion is None:
            settings = grid(result.spec, urls)
            (runner.run if result.spec.exhaustive else runner.guided)(settings)
            runner.repeat(settings)
            runner.pair(settings)
            runner.free(settings)
        elif len(result.trials) < result.planned:
            runner.convert(_places(result.spec, urls, storages, storage_options), keep)
        else:
            watcher.begin(len(result.trials), result.planned)
    except KeyboardInterrupt:
        return Outcome(runner.result, "interrupted")
    except PipeprofError:
        if not runner.result.trials:
            _remove_empty(folder)
        raise
    return Outcome(runner.result, runner.stopped)


def _places(
    spec: SweepSpec,
    urls: tuple[str, ...] | None,
    storages: tuple[str, ...] | None,
    options: Mapping[str, Any] | None,
) -> CopyPlaces:
    assert spec.conversion is not None
    asked = spec.conversion.storages
    given = storages or asked
    if tuple(redact(storage) for storage in given) != asked:
        raise UsageError(f"this sweep writes to {', '.join(asked)}; give that --storage, or none")
    return CopyPlaces((urls or spec.urls)[0], asked, given, _options(spec, options))


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
