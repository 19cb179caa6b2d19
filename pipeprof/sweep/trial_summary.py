"""Summarise a trial as a row of its sweep's table."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Mask, steady
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import spread
from pipeprof.analyze.profile.pauses import PauseFinder
from pipeprof.formats.readers import split_reader
from pipeprof.model import Profile, Recording, Trial
from pipeprof.storage.urls import redact
from pipeprof.sweep.cache import Traffic
from pipeprof.sweep.plan import TrialSetting


def summarise_trial(
    setting: TrialSetting,
    profile: Profile,
    recording: Recording,
    traffic: Traffic | None,
    file_name: str,
    kind: str = "unknown",
) -> Trial:
    """Return the row of a trial, whose profile is saved as ``file_name``.

    ``traffic`` is None where reads from devices and from memory cannot be distinguished. ``kind``
    says what was tried where the profile names no format.
    """
    every = PauseFinder(recording.warmup_batches).mark(Columns.of(recording.batches))
    columns = every.take(steady(every, recording.warmup_batches))
    complete = every.take(fully_delivered(every))
    samples = float(complete.samples.sum())
    bytes_per_sample = float(np.nansum(complete.bytes)) / samples if samples else 0.0
    roof = profile.ceilings.get("accelerator")
    physical = None
    if traffic is not None and traffic.logical:
        physical = bytes_per_sample * traffic.physical / traffic.logical
    return Trial(
        url=redact(setting.url),
        format=profile.source.format if profile.source else kind,
        config=profile.config,
        profile=file_name,
        samples_per_s=profile.throughput.samples_per_s,
        interval=profile.throughput.interval,
        reader=split_reader(setting.url)[0],
        own_interval=profile.throughput.interval,
        drift=drift_of(columns),
        spread=spread(columns.samples, columns.cycle_s),
        starved_fraction=profile.diagnosis.starved_fraction,
        starved_interval=profile.diagnosis.starved_interval,
        verdict=profile.diagnosis.verdict,
        bottleneck=profile.diagnosis.bottleneck,
        bytes_per_sample=bytes_per_sample,
        demand_samples_per_s=roof.samples_per_s if roof else None,
        cache=profile.cache,
        physical_bytes_per_sample=physical,
        cpu_s_per_sample=_cpu_s_per_sample(complete),
        decode_s_per_sample=_decode_s_per_sample(complete),
        has_step=profile.diagnosis.has_step,
    )


def fully_delivered(columns: Columns) -> Mask:
    """Return the batches from reads whose rows were all delivered.

    A read of a split or block is charged to the first batch from it. The last read of each worker
    was hardly used when the trial ended, and would make each sample appear too expensive. The only
    read of a worker is kept.
    """
    keep = np.ones(len(columns), dtype=bool)
    for worker in np.unique(columns.worker):
        own = np.flatnonzero(columns.worker == worker)
        reads = own[np.nan_to_num(columns.bytes[own]) > 0]
        if len(reads) > 1:
            keep[own[own >= reads[-1]]] = False
    return keep


def _decode_s_per_sample(columns: Columns) -> float | None:
    known, samples = np.isfinite(columns.decode_s).any(), float(columns.samples.sum())
    return float(np.nansum(columns.decode_s)) / samples if known and samples else None


def _cpu_s_per_sample(columns: Columns) -> float | None:
    """Return the CPU share of the sampled fetches, times the fetch time of all; None if unknown."""
    sampled = np.isfinite(columns.cpu_s) & np.isfinite(columns.made_s)
    made_s, samples = float(columns.made_s[sampled].sum()), float(columns.samples.sum())
    if not samples or not made_s:
        return None
    share = float(columns.cpu_s[sampled].sum()) / made_s
    return share * float(np.nansum(columns.made_s)) / samples
