"""What is read for a batch, and how little of it the batch holds."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.analyze.profile.batch_table import Columns, Floats, steady
from pipeprof.analyze.profile.storage_bottleneck import BANDWIDTH
from pipeprof.analyze.thresholds import TO_BLAME

_TIMES = 6.0
"""As many bytes as are handed over. Decoding makes data larger, as a rule; numbers that were
written as text, with all their digits, become float32 of a fifth."""
_FAST = 20e6
"""Bytes/s: what one maker of batches reads more slowly than that is not held up by bytes, but by
what else it does."""
_FEWEST = 5
"""Batches that were looked at."""


@case("read-amplification")
def amplified(facts: Facts) -> Figures | None:
    """Reading for a batch brings many times the bytes that the batch holds.

    Seen by bytes: a typical batch reads six times or more of what it hands over, at 20 MB/s or
    more in one worker, or from a storage that gives no more, while making batches is to blame. So
    it is where each row of a columnar file has its row group read, or 40 columns for the two in
    use; but also of clips, crops, thumbnails and features, which are made of far more than they
    are. Bytes count that were clocked, asked of a store, or came by read calls; memory maps and
    sockets of native clients are not seen, nor is reading that serves many batches at once. Cured
    by reading a row group once for all rows that are wanted of it, by fewer columns and smaller row
    groups, and by keeping what is really used.
    """
    if not _to_blame(facts):
        return None
    read, handed = read_bytes(facts), handed_bytes(facts)
    if not read >= _TIMES * handed > 0:
        return None
    if not (read >= _FAST * facts.made_s or facts.diagnosis.bottleneck == BANDWIDTH):
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


def _to_blame(facts: Facts) -> bool:
    """A data set of `open_dataset` reads what its format needs for the columns that were asked
    for; which format needs less, a sweep measures."""
    own = facts.recording.source is not None
    return facts.starved and facts.blamed_on_workers >= TO_BLAME and not own


def read_bytes(facts: Facts) -> float:
    """Of a typical batch: by its reads that were clocked, by all read calls of who made it, or by
    requests of storage, whichever is most; NaN unknown. The median: where one batch reads for a
    hundred that follow, it is next to nothing."""
    every = Columns.of(facts.recording.batches)
    seen = every.take(steady(every, facts.recording.warmup_batches))
    ways = [_typical(seen.bytes), _typical(seen.logical_bytes), _requested(facts, seen)]
    return max((each for each in ways if not isnan(each)), default=nan)


def _requested(facts: Facts, seen: Columns) -> float:
    """What a file of a store fetches may be more than its reader is given."""
    requests = facts.requests
    if requests is None or not requests.count:
        return nan
    # some are clocked only, and not noted with their size: those of files
    a_batch = min(_typical(seen.requests), requests.count / facts.summary.total)
    return a_batch * min(requests.size.mean, requests.size.p50)


def handed_bytes(facts: Facts) -> float:
    """Of a large batch, whatever it is made of; NaN unknown."""
    return facts.batch_bytes + facts.summary.gauges["loose_bytes"].quantiles(0.95)[0]


def _typical(figures: Floats) -> float:
    known = figures[np.isfinite(figures)]
    return float(np.median(known)) if len(known) >= _FEWEST else nan
