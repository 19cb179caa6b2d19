"""One trial: the data set, one setting, one accelerator, for a stated time."""

from __future__ import annotations

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
from pipeprof.loaders.dataset.dataset import FileDataset, open_dataset
from pipeprof.loaders.headspace import headspace
from pipeprof.loaders.instrument.batch_size import epochs
from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.model import Headspace, Profile, Recording, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.sweep.cache import ReadMeter, Traffic, label, prepare
from pipeprof.sweep.consumer import Consumer, make_consumer
from pipeprof.sweep.disambiguate_storage import disambiguated
from pipeprof.sweep.own_loader import OwnLoader, explained
from pipeprof.sweep.plan import TrialSetting
from pipeprof.sweep.references import Reference

LEAST_BATCHES = 20
"""A trial goes on past its time until it has measured so many, up to `_PATIENCE` times its time."""
_PATIENCE = 5
_TICK_S = 0.5
_AS_IT_IS = "What a loader of your own reads is not known, so the page cache is left as it is."


T = TypeVar("T")
Ran = tuple[Profile, Recording, Traffic | None]
"""A trial, explained and as measured; what its loader read meanwhile, where that is known."""


def run_trial(
    spec: SweepSpec,
    setting: TrialSetting,
    storage_options: Mapping[str, Any] | None = None,
    tick: Callable[[float], None] = lambda share: None,
    only: Collection[int] | None = None,
    ask: bool = True,
) -> Ran:
    """Prepare the cache, warm up, measure, explain.

    ``tick`` hears the share done, twice a second at most. ``only``: these splits of the data.
    ``ask``: make requests afterwards, where they would tell what of storage was waited for.
    """
    consumer = make_consumer(spec, setting.batch_size)

    def measure(made: DataLoader[Any], dataset: FileDataset | None) -> Callable[[], Ran]:
        """Runs it; what is returned explains it, so that no error of ours is the loader's."""
        if dataset is None:  # epochs one after another; each begins as the user's loader lets it
            loader = wrap(made, setting.url, consumer.label, whole=True)
            warmup = _consume(loader, consumer, spec, setting, tick, ReadMeter(setting.num_workers))
            seen = loader.recording()
            kept = slice_log(seen.batches, warmup, len(seen.batches.index))
            recording = replace(seen, batches=kept, notes=(*seen.notes, _AS_IT_IS))
            return lambda: (assemble(recording, spec.threshold), recording, None)
        begun = prepare(setting.url, spec.cache)  # last, as opening the data set reads of it
        meter = ReadMeter(setting.num_workers)
        name = f"{dataset.source.format} {redact(setting.url)}"
        loader = wrap(made, name, consumer.label, whole=True)
        warmup = _consume(loader, consumer, spec, setting, tick, meter)
        seen = loader.recording()
        notes, cache = (*seen.notes, *_notes(dataset.splits, setting)), label(begun, meter)
        measured = replace(seen, warmup_batches=warmup, cache=cache, notes=notes)
        found = meter.traffic() if begun.residency.local else None

        def explain() -> Ran:
            run = assemble(measured, spec.threshold), measured
            profile, recording = disambiguated(*run, dataset, spec) if ask else run
            return profile, recording, found[0] if found else None

        return explain

    return _with_loader(spec, setting, storage_options, measure, only)()


def measure_headspace(
    spec: SweepSpec, setting: TrialSetting, storage_options: Mapping[str, Any] | None = None
) -> Headspace:
    """What there is left to gain: ``setting`` against batches that lie in memory, measured as long
    as a trial. Raises what a trial does."""
    consumer = make_consumer(spec, setting.batch_size)

    def measure(made: DataLoader[Any], dataset: FileDataset | None) -> Headspace:
        if dataset is not None:
            prepare(setting.url, spec.cache)
        return headspace(made, consumer.step, seconds=spec.trial_s)

    return _with_loader(spec, setting, storage_options, measure)


def _with_loader(
    spec: SweepSpec,
    setting: TrialSetting,
    storage_options: Mapping[str, Any] | None,
    use: Callable[[DataLoader[Any], FileDataset | None], T],
    only: Collection[int] | None = None,
) -> T:
    """What ``use`` returns for the loader of ``setting`` and the data set it reads, which is
    ``None`` for a loader of the user's own. Raises `FormatError` when there is nothing to measure,
    and `PipeprofError` of one sentence for what is raised while the loader is iterated."""
    with any_workers():
        if spec.loader is not None:
            with explained(spec.loader):
                return use(OwnLoader(spec.loader).make(setting), None)
        assert setting.batch_size is not None
        dataset = open_dataset(
            setting.url,
            columns=spec.columns,
            batch_size=setting.batch_size,
            repeat=True,
            transform=Reference(spec.transform) if spec.transform else None,
            storage_options=storage_options,
            read=replace(spec.read, forget=spec.cache == "cold"),
            on_error=spec.on_error,
        )
        if not dataset.splits:
            raise _nothing(setting)
        dataset = dataset.only(only) if only is not None else dataset
        loader: DataLoader[Any] = DataLoader(
            dataset,
            batch_size=None,
            num_workers=setting.num_workers,
            prefetch_factor=setting.prefetch_factor,
        )
        try:
            return use(loader, dataset)
        except PipeprofError as error:
            # the traceback holds the iterator, and with it the workers
            raise _from_worker(error.with_traceback(None)) from None


def _nothing(setting: TrialSetting) -> FormatError:
    return FormatError(f"{redact(setting.url)} holds no rows; there is nothing to measure.")


@contextmanager
def any_workers() -> Iterator[None]:
    with warnings.catch_warnings():
        # more workers than cores is what a sweep tries on purpose
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def _from_worker(error: PipeprofError) -> PipeprofError:
    """torch raises a worker's error with its whole traceback for a message: keep the sentence."""
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
    """Iterate until enough is measured; the number of warm-up batches."""
    outstanding = setting.num_workers * (setting.prefetch_factor or 1)
    count = warmup = 0
    began = measuring = ticked = perf_counter()
    for batch in epochs(loader):
        consumer.step(batch)
        count += 1
        now = perf_counter()
        if not warmup:
            if now - began >= spec.warmup_s and count > outstanding:
                meter.measuring()
                warmup, measuring = count, perf_counter()
            continue
        measured_s = now - measuring
        if now - ticked > _TICK_S:
            tick(min(1.0, measured_s / spec.trial_s))
            ticked = now
        enough = measured_s >= spec.trial_s and count - warmup >= LEAST_BATCHES
        if enough or measured_s >= _PATIENCE * spec.trial_s:
            meter.end()
            return warmup
    if not count:
        raise _nothing(setting)
    return warmup


def _notes(splits: int, setting: TrialSetting) -> tuple[str, ...]:
    if setting.num_workers <= splits:
        return ()
    idle = setting.num_workers - splits
    note = f"{setting.num_workers} workers share {splits} splits: {idle} have nothing to read."
    return (f"{note} Write more, smaller files.",)
