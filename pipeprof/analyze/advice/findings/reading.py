"""Findings about how much is read for a batch."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH
from pipeprof.analyze.thresholds import TO_BLAME

_LEAST_RATIO = 6.0
"""Least bytes read per byte of the batch. Decoding mostly makes data larger. But numbers written as
text, with all their digits, shrink to a fifth as float32."""
_LEAST_READ_RATE = 20e6
"""Bytes/s of one worker. A worker that reads more slowly is not slowed by the number of bytes."""
_LEAST_BATCHES = 5
"""Batches with known bytes that a typical value needs."""


@case("read-amplification")
def amplified(facts: Facts) -> Figures | None:
    """A worker reads many times the bytes that the batch holds.

    Reported when a typical batch reads six times the bytes that it holds or more, and building
    batches causes 25 % or more of the stall. One worker must also read 20 MB/s or more, or the
    storage must be at its bandwidth. This happens where each row of a columnar file reads its
    whole row group, or where 40 columns are read for the two in use. It also happens for clips,
    crops, thumbnails and features, which are made from much larger data.
    Bytes of timed reads, of storage requests and of read calls count. Memory maps, sockets of
    native clients, and reads that serve many batches at once do not.

    Fix: read a row group once for all of its rows in a batch, read fewer columns, and write
    smaller row groups. Store only the part of a file that is used.
    """
    if not _building_is_slow(facts):
        return None
    read, handed = read_bytes(facts), handed_bytes(facts)
    if not read >= _LEAST_RATIO * handed > 0:
        return None
    if not (read >= _LEAST_READ_RATE * facts.made_s or facts.diagnosis.bottleneck == BANDWIDTH):
        return None
    return {
        "read": read,
        "a_sample": read / facts.samples,
        "handed": handed,
        "times": read / handed,
        "read_rate": read / facts.made_s,
        "iterable": facts.config.kind == "iterable",
        "several": facts.samples > 1,
    }


def _building_is_slow(facts: Facts) -> bool:
    """Return whether building batches causes the stall, with a data set of the user's own. A data
    set of `open_dataset` reads no more than its format needs; a sweep compares formats."""
    own = facts.recording.source is None
    return facts.starved and facts.blamed_on_workers >= TO_BLAME and own


def read_bytes(facts: Facts) -> float:
    """Return the bytes that a typical batch reads; NaN where unknown. It is the largest of what
    timed reads, the worker's read calls, and storage requests show. A median counts: where one
    batch reads for the next hundred, it is next to nothing."""
    every = Columns.of(facts.recording.batches)
    measured = every.take(steady(every, facts.recording.warmup_batches))
    sizes = [
        _typical(measured.bytes), _typical(measured.logical_bytes), _requested(facts, measured),
    ]  # fmt: skip
    return max((size for size in sizes if not isnan(size)), default=nan)


def _requested(facts: Facts, measured: Columns) -> float:
    """Return the bytes that storage requests bring, which may exceed what a reader receives."""
    requests = facts.requests
    if requests is None or not requests.count:
        return nan
    # requests of files are counted without their size
    per_batch = min(_typical(measured.requests), requests.count / facts.summary.total)
    return per_batch * min(requests.size.mean, requests.size.p50)


def handed_bytes(facts: Facts) -> float:
    """Return the bytes of a large batch, in tensors or not; NaN where unknown."""
    return facts.batch_bytes + facts.summary.gauges["loose_bytes"].quantiles(0.95)[0]


def _typical(figures: Floats) -> float:
    known = figures[np.isfinite(figures)]
    return float(np.median(known)) if len(known) >= _LEAST_BATCHES else nan
