"""One trial: the data set, one setting, one accelerator, for a stated time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar

from torch.utils.data import DataLoader

from pipeprof.analyze.assemble import assemble
from pipeprof.analyze.profile.batch_table import slice_log
from pipeprof.errors import FormatError, PipeprofError
from pipeprof.loaders.dataset.dataset import FileDataset, open_dataset
from pipeprof.loaders.headspace import headspace
from pipeprof.loaders.instrument.batch_size import epochs
from pipeprof.loaders.instrument.wrap import wrap
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import Headspace, Profile, Recording, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.sweep.cache import ReadMeter, Traffic, label, prepare
from pipeprof.sweep.disambiguate_storage import settled
from pipeprof.sweep.own_loader import OwnLoader, explained
from pipeprof.sweep.own_script import OwnScript
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


class Consumer(Protocol):
    """What eats the batches."""

    @property
    def label(self) -> str: ...

    def step(self, batch: Any) -> None: ...


class OwnStep:
    """The user's training step."""

    def __init__(self, text: str) -> None:
        self.label = f"your own step, {text}"
        self.step: Callable[[Any], Any] = Reference(text)
        Reference(text).load()  # or say now that there is none


def consumer_label(spec: SweepSpec) -> str:
    """Of what eats the batches."""
    if spec.script is not None:
        return f"the step of your own script, {spec.script}"
    return make_consumer(spec, None).label


def check_own(spec: SweepSpec) -> None:
    """That the user's own transform, loader or script is there, and takes what is to be varied.
    Raises `UsageError`, `PipeprofError`."""
    if spec.transform is not None:
        Reference(spec.transform).load()
    if spec.script is not None:
        OwnScript(spec.script).words()
    elif spec.loader is not None:
        several = {
            "prefetch_factor": len(spec.prefetch) > 1,
            "batch_size": bool(spec.batch_sizes),
        }
        OwnLoader(spec.loader).check(tuple(name for name, varied in several.items() if varied))


def make_consumer(spec: SweepSpec, batch_size: int | None) -> Consumer:
    if spec.step is not None:
        return OwnStep(spec.step)
    scale = batch_size / spec.batch_sizes[0] if batch_size is not None else 1.0
    return EmulatedAccelerator((spec.step_s or 0.0) * scale, name=spec.accelerator)


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

    def measure(made: DataLoader[Any], dataset: FileDataset | None) -> Ran:
        if dataset is None:  # epochs one after another; each begins as the user's loader lets it
            loader = wrap(made, setting.url, consumer.label, whole=True)
            warmup = _consume(loader, consumer, spec, setting, tick, ReadMeter(setting.num_workers))
            seen = loader.recording()
            kept = slice_log(seen.batches, warmup, len(seen.batches.index))
            recording = replace(seen, batches=kept, notes=(*seen.notes, _AS_IT_IS))
            return assemble(recording, spec.threshold), recording, None
        begun = prepare(setting.url, spec.cache)  # last, as opening the data set reads of it
        meter = ReadMeter(setting.num_workers)
        name = f"{dataset.source.format} {redact(setting.url)}"
        loader = wrap(made, name, consumer.label, whole=True)
        warmup = _consume(loader, consumer, spec, setting, tick, meter)
        seen = loader.recording()
        notes, cache = (*seen.notes, *_notes(dataset.splits, setting)), label(begun, meter)
        recording = replace(seen, warmup_batches=warmup, cache=cache, notes=notes)
        profile = assemble(recording, spec.threshold)
        if ask:
            profile, recording = settled(profile, recording, dataset, spec)
        found = meter.traffic() if begun.residency.local else None
        return profile, recording, found[0] if found else None

    return _with_loader(spec, setting, storage_options, measure, only)


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


def run_script_trial(spec: SweepSpec, setting: TrialSetting, log: Path) -> Ran:
    """As long as the script takes. What it says goes to ``log``."""
    assert spec.script is not None
    profile = OwnScript(spec.script).run(setting, spec.threshold, log)
    accelerator = consumer_label(spec)
    config, environment = profile.config, replace(profile.environment, accelerator=accelerator)
    recording = Recording(
        name=profile.name,
        created=profile.created,
        config=config,
        environment=environment,
        batches=profile.batches,
        warmup_batches=max(1, config.num_workers * (config.prefetch_factor or 1)),
        first_batch_s=profile.first_batch_s,
    )
    return replace(profile, environment=environment), recording, None


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
