"""One trial: the data set, one setting, one accelerator, for a stated time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

from torch.utils.data import DataLoader

from pipeprof.analyze.profile import assemble
from pipeprof.errors import FormatError, PipeprofError
from pipeprof.loaders.dataset import open_dataset
from pipeprof.loaders.wrap import wrap
from pipeprof.measure.accelerator import EmulatedAccelerator
from pipeprof.model import Profile, Recording, SweepSpec
from pipeprof.storage.urls import redact
from pipeprof.sweep.cache import ReadMeter, Traffic, label, prepare
from pipeprof.sweep.grid import Setting
from pipeprof.sweep.references import Reference
from pipeprof.sweep.settle import settled

LEAST_BATCHES = 20
"""A trial goes on past its time until it has measured so many, up to `_PATIENCE` times its time."""
_PATIENCE = 5
_TICK_S = 0.5


class Consumer(Protocol):
    """What eats the batches."""

    @property
    def label(self) -> str: ...

    def step(self, batch: Any) -> None: ...


class OwnStep:
    """The user's training step."""

    def __init__(self, text: str) -> None:
        self.label = f"your own step, {text}"
        self.step: Callable[[Any], Any] = Reference(text).load()


def make_consumer(spec: SweepSpec, batch_size: int) -> Consumer:
    if spec.step is not None:
        return OwnStep(spec.step)
    step_s = (spec.step_s or 0.0) * batch_size / spec.batch_sizes[0]
    return EmulatedAccelerator(step_s, name=spec.accelerator)


def run_trial(
    spec: SweepSpec,
    setting: Setting,
    storage_options: Mapping[str, Any] | None = None,
    tick: Callable[[float], None] = lambda share: None,
    only: Collection[int] | None = None,
) -> tuple[Profile, Recording, Traffic | None]:
    """Prepare the cache, warm up, measure, explain; and what the loader read while it measured.

    ``tick`` hears the share done, twice a second at most. ``only``: these splits of the data.
    """
    consumer = make_consumer(spec, setting.batch_size)
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
        raise FormatError(f"{redact(setting.url)} holds no rows; there is nothing to measure.")
    if only is not None:
        dataset = dataset.only(only)
    begun = prepare(setting.url, spec.cache)  # last, as opening the data set reads of it
    with warnings.catch_warnings():
        # more workers than cores is what a sweep tries on purpose
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        inner: DataLoader[Any] = DataLoader(
            dataset,
            batch_size=None,
            num_workers=setting.num_workers,
            prefetch_factor=setting.prefetch_factor,
        )
        meter = ReadMeter(setting.num_workers)
        name = f"{dataset.source.format} {redact(setting.url)}"
        loader = wrap(inner, name, accelerator=consumer.label)
        try:
            warmup = _consume(loader, consumer, spec, setting, tick, meter)
        except PipeprofError as error:
            # the traceback holds the iterator, and with it the workers
            raise from_worker(error.with_traceback(None)) from None
    seen = loader.recording()
    recording = replace(
        seen,
        warmup_batches=warmup,
        cache=label(begun, meter),
        notes=(*seen.notes, *_notes(dataset.splits, setting)),
    )
    told = meter.told() if begun.residency.local else None
    profile, recording = settled(assemble(recording, spec.threshold), recording, dataset, spec)
    return profile, recording, told[0] if told else None


def from_worker(error: PipeprofError) -> PipeprofError:
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
    setting: Setting,
    tick: Callable[[float], None],
    meter: ReadMeter,
) -> int:
    """Iterate until enough is measured; the number of warm-up batches."""
    outstanding = setting.num_workers * (setting.prefetch_factor or 1)
    count = warmup = 0
    began = measuring = ticked = perf_counter()
    for batch in loader:
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
        raise FormatError(f"{redact(setting.url)} holds no rows; there is nothing to measure.")
    return warmup


def _notes(splits: int, setting: Setting) -> tuple[str, ...]:
    if setting.num_workers <= splits:
        return ()
    idle = setting.num_workers - splits
    note = f"{setting.num_workers} workers share {splits} splits: {idle} have nothing to read."
    return (f"{note} Write more, smaller files.",)
