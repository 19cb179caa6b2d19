"""A sweep, planned: all that its trials need is decided here, before the first of them runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from pipeprof.errors import OutputError, ProfileError, UsageError
from pipeprof.measure.environment import read_environment
from pipeprof.model import Copy, SweepResult, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE, load

LOCAL = "local"
"""The storage of copies that is a folder next to the results."""


@dataclass(frozen=True)
class TrialSetting:
    """One point of the grid."""

    url: str
    """With credentials."""
    batch_size: int | None
    """``None``: left to the user's own loader or script."""
    num_workers: int
    prefetch_factor: int | None
    """``None`` without workers."""


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep runs, on what, and where its results go. URLs have the credentials that are
    never saved."""

    begun: SweepResult
    """As it is saved before this run: without trials when it is new."""
    folder: Path
    """Takes the results."""
    urls: tuple[str, ...] = field(repr=False)
    """The data sets as they are; of a loader or a script of the user's own, its name."""
    storages: tuple[str, ...] = field(default=(), repr=False)
    """`ConversionSpec.storages`."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """What all stores are opened with, the client among them."""

    @property
    def spec(self) -> SweepSpec:
        """What was asked for."""
        return self.begun.spec

    @property
    def settings(self) -> tuple[TrialSetting, ...]:
        """All that can be tried on the data as they are."""
        return grid(self.spec, self.urls)

    def copy_url(self, copy: Copy) -> str:
        """Where ``copy`` lies."""
        assert self.spec.conversion is not None
        storage = self.storages[self.spec.conversion.storages.index(copy.storage)]
        if storage == LOCAL:
            return copy.url
        return storage.rstrip("/") + copy.url.removeprefix(redact(storage).rstrip("/"))


def plan_sweep(
    spec: SweepSpec,
    folder: Path,
    urls: tuple[str, ...] = (),
    storage_options: Mapping[str, Any] | None = None,
    storages: tuple[str, ...] | None = None,
) -> SweepPlan:
    """Plan a new sweep, and save it in ``folder``; nothing is written when it cannot run.

    Args:
        spec: What to try.
        folder: Is made when it is not there.
        urls: The URLs of ``spec`` with credentials; empty where they need none.
        storage_options: fsspec's.
        storages: The storages of ``spec.conversion`` with credentials.

    Raises:
        UsageError, StorageError, FormatError, OutputError: It cannot run, or not be saved.
    """
    check(spec)
    # imports torch: after whatever can be refused without
    from pipeprof.loaders.dataset.dataset import open_dataset
    from pipeprof.sweep.consumer import check_own, consumer_label
    from pipeprof.sweep.convert.convert import plan_conversion

    environment = read_environment(consumer_label(spec))
    check_own(spec)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    begun = SweepResult(now, spec, environment, planned=len(grid(spec, spec.urls)))
    plan = _plan(begun, folder, urls, storage_options, storages)
    for url in () if spec.own else plan.urls:
        data = open_dataset(
            url,
            columns=spec.columns,
            storage_options=plan.storage_options,
            on_error=spec.on_error,
        )
    if spec.conversion is not None:
        conversion = plan_conversion(plan, data.source.format)
        planned = 1 + begun.planned * (1 + len(conversion.copies))
        plan = replace(plan, begun=replace(begun, planned=planned, conversion=conversion))
    if (folder / SWEEP_FILE).exists():
        raise UsageError(
            f"{folder} holds a sweep already; go on with --resume {folder}, or choose another --out"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {os.strerror(error.errno or 0)}.") from None
    plan.begun.save(folder / SWEEP_FILE)
    return plan


def plan_rest(
    folder: Path,
    urls: tuple[str, ...] = (),
    storage_options: Mapping[str, Any] | None = None,
    storages: tuple[str, ...] | None = None,
    s3_client: str | None = None,
) -> SweepPlan:
    """Plan what the sweep saved in ``folder`` lacks. The other arguments, where they are given,
    must be those it was begun with; only credentials may differ.

    Raises:
        ProfileError: ``folder`` holds no sweep.
        UsageError: An argument is another than when it was begun.
    """
    begun = load(folder / SWEEP_FILE)
    if not isinstance(begun, SweepResult):
        raise ProfileError(f"{folder / SWEEP_FILE} is a profile, not a sweep.")
    spec = begun.spec
    if urls and tuple(map(redact, urls)) != spec.urls:
        raise UsageError(f"this sweep is over {', '.join(spec.urls)}; give those URLs, or none")
    if s3_client not in (None, spec.s3_client):
        with_it = f"with --s3-client {spec.s3_client}" if spec.s3_client else "without --s3-client"
        raise UsageError(f"this sweep was begun {with_it}; go on with that, or leave it out")
    return _plan(begun, folder, urls, storage_options, storages)


def _plan(
    begun: SweepResult,
    folder: Path,
    urls: tuple[str, ...],
    options: Mapping[str, Any] | None,
    storages: tuple[str, ...] | None,
) -> SweepPlan:
    spec = begun.spec
    if spec.s3_client:
        options = {**(options or {}), "s3_client": spec.s3_client}
    saved = spec.conversion.storages if spec.conversion is not None else ()
    if spec.conversion is not None and storages and tuple(map(redact, storages)) != saved:
        raise UsageError(f"this sweep writes to {', '.join(saved)}; give that --storage, or none")
    return SweepPlan(begun, folder, urls or spec.urls, storages or saved, options)


def new_folder(parent: Path = Path("pipeprof-results")) -> Path:
    """``pipeprof-results/sweep-20260131-142501``, or the next free name."""
    name = datetime.now().strftime("sweep-%Y%m%d-%H%M%S")
    folder, again = parent / name, 1
    while folder.exists():
        again += 1
        folder = parent / f"{name}-{again}"
    return folder


def grid(spec: SweepSpec, urls: tuple[str, ...]) -> tuple[TrialSetting, ...]:
    """Every combination once, in the order in which they run; without workers, prefetching means
    nothing and is not varied."""
    settings = (
        TrialSetting(url, batch_size, workers, prefetch if workers else None)
        for url, batch_size, workers, prefetch in product(
            urls, spec.batch_sizes or (None,), spec.workers, spec.prefetch
        )
    )
    return tuple(dict.fromkeys(settings))


def check(spec: SweepSpec) -> None:
    """Raises `UsageError` for what cannot be run; needs no data."""
    for name, values, least in (
        ("URL", spec.urls, None),
        ("--workers", spec.workers, 0),
        ("--prefetch", spec.prefetch, 1),
        ("--batch-size", spec.batch_sizes, 1),
    ):
        left_out = spec.own is not None and values is spec.batch_sizes
        if not values and not left_out:
            raise UsageError(f"nothing to try: give at least one {name}")
        wrong = [value for value in values if isinstance(value, int) and value < (least or 0)]
        if wrong:
            raise UsageError(f"{name} {wrong[0]} is impossible; it must be at least {least}")
    if spec.conversion is not None and len(spec.urls) > 1:
        raise UsageError("--formats converts one data set; name one URL")
    if spec.own is not None and (spec.conversion or spec.transform or spec.columns):
        raise UsageError(
            "--formats, --transform and --columns are for data sets, not for what makes batches of "
            "its own"
        )
    if not spec.trial_s > 0 or spec.warmup_s < 0:
        raise UsageError("a trial must measure for more than 0 s")
    if not 0 < spec.threshold < 1:
        raise UsageError(f"a threshold of {spec.threshold} is impossible; it is a share, 0 to 1")
    _check_step(spec)


def _check_step(spec: SweepSpec) -> None:
    given = sum(step is not None for step in (spec.step_s, spec.step))
    if spec.script is not None:
        if given:
            raise UsageError("a script has a training step of its own; leave out any other")
    elif given != 1:
        raise UsageError("give either an emulated step time or a training step of your own")
    elif spec.step_s is not None and not spec.step_s >= 0:
        raise UsageError(f"a step of {spec.step_s} s is impossible; give 0 or more")
