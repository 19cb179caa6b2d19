"""The row that a trial becomes in its sweep's table."""

from __future__ import annotations

import numpy as np

from pipeprof.analyze.profile.batch_table import Columns, Mask, steady
from pipeprof.analyze.profile.drift import drift_of
from pipeprof.analyze.profile.intervals import spread
from pipeprof.analyze.profile.pauses import PauseFinder
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
    """``traffic``: what the loader read, where devices can be told from memory; ``kind``: what was
    tried, where it is no data set of a format that we know."""
    every = PauseFinder(recording.warmup_batches).mark(Columns.of(recording.batches))
    columns = every.take(steady(every, recording.warmup_batches))
    whole = every.take(used_up(every))
    samples = float(whole.samples.sum())
    bytes_per_sample = float(np.nansum(whole.bytes)) / samples if samples else 0.0
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
        cpu_s_per_sample=_cpu(whole),
        decode_s_per_sample=_decode(whole),
        has_step=profile.diagnosis.has_step,
    )


def used_up(columns: Columns) -> Mask:
    """Batches of rows that were all delivered.

    Reads and decoding come in lumps of a split or a block, charged to the first batch that is made
    of one. The last lump of each worker was hardly begun when the trial ended: counted, it would
    make each sample dearer than it is. Where a worker had but one, that is all there is.
    """
    keep = np.ones(len(columns), dtype=bool)
    for worker in np.unique(columns.worker):
        own = np.flatnonzero(columns.worker == worker)
        lumps = own[np.nan_to_num(columns.bytes[own]) > 0]
        if len(lumps) > 1:
            keep[own[own >= lumps[-1]]] = False
    return keep


def _decode(columns: Columns) -> float | None:
    known, samples = np.isfinite(columns.decode_s).any(), float(columns.samples.sum())
    return float(np.nansum(columns.decode_s)) / samples if known and samples else None


def _cpu(columns: Columns) -> float | None:
    """The CPU's share of making a batch, which is sampled, times the time of making one, which is
    known of each."""
    sampled = np.isfinite(columns.cpu_s) & np.isfinite(columns.made_s)
    made_s, samples = float(columns.made_s[sampled].sum()), float(columns.samples.sum())
    if not samples or not made_s:
        return None
    share = float(columns.cpu_s[sampled].sum()) / made_s
    return share * float(np.nansum(columns.made_s)) / samples
