"""Plan a sweep: decide all that its trials need before the first of them runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

from pipeprof.errors import OutputError, ProfileError, UsageError
from pipeprof.formats.readers import OWN, READERS, each_reader, split_reader
from pipeprof.loaders.dataset.order import parse_order
from pipeprof.measure.environment import read_environment
from pipeprof.model import Copy, SweepResult, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.store import SWEEP_FILE, load
from pipeprof.sweep.engines.engine import HERE, Engine

LOCAL = "local"
"""The name of the storage that is a folder next to the results."""


@dataclass(frozen=True)
class TrialSetting:
    """One combination of the values that a sweep tries."""

    url: str
    """The URL of the data set, with credentials."""
    batch_size: int | None
    """The samples of a batch; None where the user's own loader or script decides."""
    num_workers: int
    prefetch_factor: int | None
    """The batches that each worker prefetches; None without workers."""
    shuffle: str = "none"
    """The order of rows, as `open_dataset` takes it."""


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep runs, and where its results go. Its URLs have the credentials, which are never
    saved."""

    initial: SweepResult
    """The saved result before this run, without trials when the sweep is new."""
    folder: Path
    """The folder of the results."""
    urls: tuple[str, ...] = field(repr=False)
    """The data sets before any conversion, or the name of the user's own loader or script."""
    storages: tuple[str, ...] = field(default=(), repr=False)
    """`ConversionSpec.storages`, with credentials."""
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    """The options with which all stores are opened, the name of the client included."""
    engine: Engine = field(default=HERE, repr=False)
    """What runs the trials."""

    @property
    def spec(self) -> SweepSpec:
        """What the user asked for."""
        return self.initial.spec

    @property
    def original(self) -> str:
        """The URL of the data that is converted, without a reader."""
        return split_reader(self.urls[0])[1]

    def settings(self, copies: Sequence[Copy] = ()) -> tuple[TrialSetting, ...]:
        """Return all settings of the original data sets and of these copies."""
        read = (url for copy in copies for url in self.read_urls(copy))
        return grid(self.spec, (*self.urls, *read))

    def read_urls(self, copy: Copy) -> tuple[str, ...]:
        """Return the URL of ``copy`` for each reader of the sweep that knows its format, or else
        for the format's own decoder."""
        asked = [split_reader(url)[0] or OWN for url in self.urls]
        able = [name for name in asked if name == OWN or copy.format in READERS[name]]
        return tuple(each_reader(self.copy_url(copy), able or [OWN]))

    def copy_url(self, copy: Copy) -> str:
        """Return the URL of ``copy``, with credentials."""
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
    engine: Engine = HERE,
) -> SweepPlan:
    """Plan a new sweep, and save it in ``folder``. Nothing is written when it cannot run.

    Args:
        spec: What to try.
        folder: The folder of the results, which is created if needed.
        urls: The URLs of ``spec`` with credentials; empty where they need none.
        storage_options: The storage options of fsspec.
        storages: The storages of ``spec.conversion`` with credentials.
        engine: What runs the trials.

    Raises:
        UsageError, StorageError, FormatError, OutputError: It cannot run, or not be saved.
    """
    check(spec)
    # these import torch, which is slow: whatever can be refused before is refused above
    from pipeprof.sweep.consumer import check_own, consumer_label
    from pipeprof.sweep.convert.convert import plan_conversion
    from pipeprof.sweep.local_cache import check_folder

    environment = engine.call(read_environment, consumer_label(spec))
    engine.call(check_own, spec)
    if spec.local_cache is not None:
        engine.call(check_folder, spec.local_cache)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    initial = SweepResult(now, spec, environment, planned=len(grid(spec, spec.urls)))
    plan = replace(_plan(initial, folder, urls, storage_options, storages), engine=engine)
    formats = [engine.call(_format_of, url, spec, plan.storage_options)
               for url in ([] if spec.own else plan.urls)]  # fmt: skip
    _check_images(plan.urls, formats)
    if spec.conversion is not None:
        conversion = plan_conversion(plan, formats[0])
        planned = 1 + len(plan.settings(conversion.copies))
        plan = replace(plan, initial=replace(initial, planned=planned, conversion=conversion))
    _save_new(plan.initial, folder)
    return plan


def _format_of(url: str, spec: SweepSpec, storage_options: Mapping[str, Any] | None) -> str:
    """Return the format of the data at ``url``. Raises the errors of a URL that is no data set."""
    from pipeprof.loaders.dataset.dataset import open_dataset
    from pipeprof.loaders.dataset.planning import ColumnsLeftOut

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnsLeftOut)  # each trial notes them
        data = open_dataset(
            url, columns=spec.columns, storage_options=storage_options, on_error=spec.on_error
        )
    return data.source.format


def _check_images(urls: Sequence[str], formats: Sequence[str]) -> None:
    """Raise `UsageError` where some images would be decoded, and others not."""
    images = [url for url, name in zip(urls, formats, strict=False) if name == "images"]
    if len({split_reader(url)[0] is None for url in images}) > 1:
        raise UsageError(
            "own hands on the bytes of images, and the other readers decode them; compare readers "
            "that do the same, e.g. --reader pillow,simplejpeg"
        )


def _save_new(sweep: SweepResult, folder: Path) -> None:
    """Create the folder of a new sweep, and save the sweep in it."""
    if (folder / SWEEP_FILE).exists():
        raise UsageError(
            f"{folder} holds a sweep already; use --resume {folder}, or choose another --out"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made: {os.strerror(error.errno or 0)}.") from None
    sweep.save(folder / SWEEP_FILE)


def plan_remaining(
    folder: Path,
    urls: tuple[str, ...] = (),
    storage_options: Mapping[str, Any] | None = None,
    storages: tuple[str, ...] | None = None,
    s3_client: str | None = None,
    engine: Engine = HERE,
) -> SweepPlan:
    """Plan the remaining trials of the sweep saved in ``folder``.

    The other arguments may be left out. Where they are given, they must be those of the saved
    sweep, except for credentials.

    Raises:
        ProfileError: ``folder`` holds no sweep.
        UsageError: An argument differs from that of the saved sweep.
    """
    saved = load(folder / SWEEP_FILE)
    if not isinstance(saved, SweepResult):
        raise ProfileError(f"{folder / SWEEP_FILE} is a profile, not a sweep.")
    spec = saved.spec
    if urls and tuple(map(redact, urls)) != spec.urls:
        raise UsageError(f"this sweep is over {', '.join(spec.urls)}; give those URLs, or none")
    if s3_client not in (None, spec.s3_client):
        client = f"with --s3-client {spec.s3_client}" if spec.s3_client else "without --s3-client"
        raise UsageError(f"this sweep was begun {client}; use the same, or omit the option")
    return replace(_plan(saved, folder, urls, storage_options, storages), engine=engine)


def _plan(
    initial: SweepResult,
    folder: Path,
    urls: tuple[str, ...],
    options: Mapping[str, Any] | None,
    storages: tuple[str, ...] | None,
) -> SweepPlan:
    spec = initial.spec
    if spec.s3_client:
        options = {**(options or {}), "s3_client": spec.s3_client}
    saved = spec.conversion.storages if spec.conversion is not None else ()
    if spec.conversion is not None and storages and tuple(map(redact, storages)) != saved:
        raise UsageError(f"this sweep writes to {', '.join(saved)}; give that --storage, or none")
    return SweepPlan(initial, folder, urls or spec.urls, storages or saved, options)


def new_folder(parent: Path = Path("pipeprof-results")) -> Path:
    """Return a path like ``pipeprof-results/sweep-20260131-142501`` that does not exist."""
    name = datetime.now().strftime("sweep-%Y%m%d-%H%M%S")
    folder, again = parent / name, 1
    while folder.exists():
        again += 1
        folder = parent / f"{name}-{again}"
    return folder


def grid(spec: SweepSpec, urls: tuple[str, ...]) -> tuple[TrialSetting, ...]:
    """Return all combinations in the order in which they run. The prefetch factor has no meaning
    without workers, and is not varied there."""
    settings = (
        TrialSetting(url, batch_size, workers, prefetch if workers else None)
        for url, batch_size, workers, prefetch in product(
            urls, spec.batch_sizes or (None,), spec.workers, spec.prefetch
        )
    )
    return tuple(dict.fromkeys(settings))


def check(spec: SweepSpec) -> None:
    """Raise `UsageError` for a sweep that cannot run, without looking at the data."""
    if not spec.urls:
        raise UsageError("nothing to try: give at least one URL")
    for name, values, least in (
        ("--workers", spec.workers, 0),
        ("--prefetch", spec.prefetch, 1),
        ("--batch-size", spec.batch_sizes, 1),
    ):
        if not values and not (spec.own and name == "--batch-size"):
            raise UsageError(f"nothing to try: give at least one {name}")
        for value in values:
            if value < least:
                raise UsageError(f"{name} {value} is impossible; it must be at least {least}")
    if spec.conversion is not None:
        _check_conversion(spec)
    if spec.local_cache is not None and spec.own:
        raise UsageError("--local-cache is for data sets, not for a loader or script of your own")
    if spec.shuffle and spec.own:
        raise UsageError("--shuffle is for data sets, not for a loader or script of your own")
    for order in spec.shuffle:
        parse_order(order)
    if spec.own is not None and (spec.conversion or spec.transform or spec.columns):
        raise UsageError(
            "--formats, --transform and --columns are for data sets, not for a loader or script "
            "of your own"
        )
    if not spec.trial_s > 0 or spec.warmup_s < 0:
        raise UsageError("a trial must measure for more than 0 s")
    if not 0 < spec.threshold < 1:
        raise UsageError(f"a threshold of {spec.threshold} is impossible; give a share, 0 to 1")
    _check_step(spec)


def _check_conversion(spec: SweepSpec) -> None:
    named = [split_reader(url) for url in spec.urls]
    if len({url for _, url in named}) > 1 or len(set(named)) < len(named):
        raise UsageError("--formats converts one data set; name one URL")
    decoding = [name for name, _ in named if name and READERS[name] == ("images",)]
    if decoding:
        raise UsageError(
            f"{decoding[0]} decodes images, and copies hold their bytes: name no such reader with "
            "--formats, or decode by --transform"
        )


def _check_step(spec: SweepSpec) -> None:
    given = sum(step is not None for step in (spec.step_s, spec.step))
    if spec.script is not None:
        if given:
            raise UsageError("a script has a training step of its own; omit any other")
    elif given != 1:
        raise UsageError("give either an emulated step time or a training step of your own")
    elif spec.step_s is not None and not spec.step_s >= 0:
        raise UsageError(f"a step of {spec.step_s} s is impossible; give 0 or more")
