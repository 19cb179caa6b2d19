"""Run one trial: a data set is read with one setting, for one consumer, for a stated time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from torch.utils.data import DataLoader

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import slice_log
from pipeprof.errors import FormatError, PipeprofError
from pipeprof.formats.readers import split_reader
from pipeprof.loaders.dataset.dataset import FileDataset, open_dataset
from pipeprof.loaders.dataset.planning import ColumnsLeftOut
from pipeprof.loaders.headspace import headspace
from pipeprof.loaders.instrument.batch_size import epochs
from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.model import Headspace, Profile, Recording, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.sweep.cache import ReadMeter, Traffic, prepare, trial_cache_state
from pipeprof.sweep.consumer import Consumer, make_consumer
from pipeprof.sweep.disambiguate_storage import disambiguate
from pipeprof.sweep.own_loader import OwnLoader, raise_loader_errors
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.references import Reference

LEAST_BATCHES = 20
"""A trial is prolonged until it has measured so many, up to `_MAX_PROLONGATION` times its time."""
_MAX_PROLONGATION = 5
_TICK_S = 0.5
_CACHE_NOT_PREPARED = (
    "It is unknown what a loader of your own reads, so the page cache was not prepared."
)

T = TypeVar("T")
TrialRun = tuple[Profile, Recording, Traffic | None]
"""The profile and recording of a trial, and what its loader read; None where that is unknown."""
_Measured = tuple[Recording, Traffic | None, FileDataset | None]


def run_trial(
    spec: SweepSpec,
    setting: TrialSetting,
    storage_options: Mapping[str, Any] | None = None,
    tick: Callable[[float], None] = lambda share: None,
    splits: Collection[int] | None = None,
    lone_requests: bool = True,
) -> TrialRun:
    """Prepare the cache, warm up, measure, and analyze the recording.

    ``tick`` receives the share of the trial that is done, at most twice a second. ``splits`` are
    the numbers of the splits to read; None reads all. ``lone_requests`` allows some requests after
    the trial, where these may show which part of the storage is the bottleneck.
    """
    consumer = make_consumer(spec, setting.batch_size)

    def measure(loader: DataLoader[Any], dataset: FileDataset | None) -> _Measured:
        name, prepared = setting.url, None
        if dataset is not None:
            name = f"{dataset.source.format} {redact(setting.url)}"
            prepared = prepare(_plain(setting), spec.cache)  # here, as opening the data set reads
        meter = ReadMeter(setting.num_workers)
        profiled = wrap(loader, name, consumer.label, whole=True)
        warmup = _consume(profiled, consumer, spec, setting, tick, meter)
        recording = profiled.recording()
        if dataset is None or prepared is None:
            return _without_warmup(recording, warmup), None, None
        recording = replace(
            recording,
            warmup_batches=warmup,
            cache=trial_cache_state(prepared, meter),
            notes=(*recording.notes, *_notes(dataset.splits, setting)),
        )
        counted = meter.traffic() if prepared.residency.local else None
        return recording, counted[0] if counted else None, dataset

    recording, traffic, dataset = with_loader(spec, setting, storage_options, measure, splits)
    profile = assemble(recording, spec.threshold)  # out here, its errors are not the loader's
    if dataset is not None and lone_requests:
        profile, recording = disambiguate(profile, recording, dataset, spec)
    return profile, recording, traffic


def _without_warmup(recording: Recording, warmup: int) -> Recording:
    """Cut the warm-up off the recording of a user's own loader, which ran for several epochs."""
    batches = slice_log(recording.batches, warmup, len(recording.batches.index))
    return replace(recording, batches=batches, notes=(*recording.notes, _CACHE_NOT_PREPARED))


def measure_headspace(
    spec: SweepSpec, setting: TrialSetting, storage_options: Mapping[str, Any] | None = None
) -> Headspace:
    """Compare ``setting`` with batches that are in memory already, for as long as a trial."""
    consumer = make_consumer(spec, setting.batch_size)

    def measure(loader: DataLoader[Any], dataset: FileDataset | None) -> Headspace:
        if dataset is not None:
            prepare(_plain(setting), spec.cache)
        return headspace(loader, consumer.step, seconds=spec.trial_s)

    return with_loader(spec, setting, storage_options, measure)


def with_loader(
    spec: SweepSpec,
    setting: TrialSetting,
    storage_options: Mapping[str, Any] | None,
    use: Callable[[DataLoader[Any], FileDataset | None], T],
    splits: Collection[int] | None = None,
    by_epochs: bool = False,
) -> T:
    """Call ``use`` with the loader of ``setting`` and its data set; None for a user's own loader.
    The loader never ends; ``by_epochs`` it ends with each epoch, and keeps its workers.

    Raises `FormatError` when there is nothing to measure, and a `PipeprofError` of one sentence
    for any error while the loader is iterated.
    """
    with any_workers():
        if spec.loader is not None:
            with raise_loader_errors(spec.loader):
                return use(OwnLoader(spec.loader).make(setting), None)
        assert setting.batch_size is not None
        warnings.simplefilter("ignore", ColumnsLeftOut)  # the profile notes them
        # workers that decode it are spawned, see `_start_method`
        warnings.filterwarnings("ignore", "lance is not fork-safe")
        dataset = open_dataset(
            setting.url,
            columns=spec.columns,
            batch_size=setting.batch_size,
            repeat=not by_epochs,
            shuffle=setting.shuffle,
            transform=Reference(spec.transform) if spec.transform else None,
            storage_options=storage_options,
            read=replace(spec.read, forget=spec.cache == "cold"),
            on_error=spec.on_error,
        )
        if not dataset.splits:
            raise _no_rows(setting)
        dataset = dataset.only(splits) if splits is not None else dataset
        try:
            return use(loader_of(dataset, setting, by_epochs), dataset)
        except PipeprofError as error:
            # the traceback would keep the iterator alive, and with it the workers
            raise _without_traceback(error.with_traceback(None)) from None


def loader_of(
    dataset: FileDataset, setting: TrialSetting, keep_workers: bool = False
) -> DataLoader[Any]:
    """Return a loader of ``setting`` for the data set."""
    return DataLoader(
        dataset,
        batch_size=None,
        num_workers=setting.num_workers,
        prefetch_factor=setting.prefetch_factor,
        multiprocessing_context=_start_method(dataset) if setting.num_workers else None,
        persistent_workers=keep_workers and setting.num_workers > 0,
    )


def _start_method(dataset: FileDataset) -> str | None:
    """Return how workers must be started: a library whose threads run here cannot be forked."""
    return "spawn" if dataset.unforkable in sys.modules else None


def _plain(setting: TrialSetting) -> str:
    """Return the URL of a setting without its reader."""
    return split_reader(setting.url)[1]


def _no_rows(setting: TrialSetting) -> FormatError:
    return FormatError(f"{redact(setting.url)} holds no rows; there is nothing to measure.")


@contextmanager
def any_workers() -> Iterator[None]:
    """Silence torch's warning of more workers than cores, which a sweep tries on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def _without_traceback(error: PipeprofError) -> PipeprofError:
    """Return a worker's error with its own sentence, where torch made its traceback the message."""
    lines = str(error).splitlines()
    if len(lines) < 2 or not lines[0].startswith("Caught "):
        return error
    name = f"{type(error).__module__}.{type(error).__qualname__}: "
    start = max(number for number, line in enumerate(lines) if line.startswith(name))
    return type(error)("\n".join(lines[start:]).removeprefix(name))


def _consume(
    loader: Any,
    consumer: Consumer,
    spec: SweepSpec,
    setting: TrialSetting,
    tick: Callable[[float], None],
    meter: ReadMeter,
) -> int:
    """Iterate until enough is measured, and return the number of warm-up batches."""
    prefetched = setting.num_workers * (setting.prefetch_factor or 1)
    count = warmup = 0
    began = measuring = ticked = perf_counter()
    for batch in epochs(loader):
        consumer.step(batch)
        count += 1
        now = perf_counter()
        if not warmup:
            if now - began >= spec.warmup_s and count > prefetched:
                meter.end_warmup()
                warmup, measuring = count, perf_counter()
            continue
        measured_s = now - measuring
        if now - ticked > _TICK_S:
            tick(min(1.0, measured_s / spec.trial_s))
            ticked = now
        enough = measured_s >= spec.trial_s and count - warmup >= LEAST_BATCHES
        if enough or measured_s >= _MAX_PROLONGATION * spec.trial_s:
            meter.end()
            return warmup
    if not count:
        raise _no_rows(setting)
    return warmup


def _notes(splits: int, setting: TrialSetting) -> tuple[str, ...]:
    if setting.num_workers <= splits:
        return ()
    idle = setting.num_workers - splits
    note = f"{setting.num_workers} workers share {splits} splits: {idle} have nothing to read."
    return (f"{note} Write more, smaller files.",)
