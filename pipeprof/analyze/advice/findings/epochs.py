"""Findings about whole epochs: between two of them, and over many."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean, median

from pipeprof.analyze.advice.findings.case import case
from pipeprof.analyze.advice.metrics import Facts
from pipeprof.analyze.advice.proposal import Figures
from pipeprof.model import Epoch

_LEAST_EPOCHS = 6
"""Epochs after the first that show a trend."""
_LEAST_SLOWER = 0.1
"""Share by which the last third of the epochs is slower than the first."""
_LEAST_CONCORDANCE = 0.8
"""Share of all pairs of epochs in which the later is slower, minus the share in which it is
faster (Kendall's tau). Six epochs that only vary reach it once in 120 times, more epochs less."""
_LEAST_DRAIN_S, _LEAST_DRAIN_SHARE = 0.02, 0.05
"""Seconds, and share of an epoch, from which the wait for its first batch is reported."""


@case("iterator-per-batch")
def iterator_per_batch(facts: Facts) -> Figures | None:
    """A new iterator is made for each batch, as by `next(iter(loader))` within the loop.

    Reported when nine of ten iterators, and ten or more, were left after one batch. Each starts the
    workers anew, unless they persist, and has them fetch batches that nobody takes. With
    `shuffle=True` each draws a new order: some samples come often, and others never.

    Fix: iterate the loader by `for`, or make one iterator before the loop:
    `batches = iter(loader)`.
    """
    if facts.diagnosis.unjudged != "iterator-per-batch":
        return None
    epochs = facts.recording.epochs
    first_s = median(epoch.first_batch_s or 0.0 for epoch in epochs)
    return {"iterators": len(epochs), "first_s": first_s}


@case("epoch-drain")
def drained_queue(facts: Facts) -> Figures | None:
    """Each epoch begins with an empty queue, although its workers stay.

    Reported when persistent workers let 5 % or more of a typical epoch pass before its first batch.
    Workers prefetch nothing for the next epoch, which torch cannot change. The verdict leaves this
    time out.

    Fix: make epochs longer, for example by a sampler that repeats the data set.
    """
    later = [epoch for epoch in facts.recording.epochs if epoch.index and epoch.first_batch_s]
    if not facts.config.persistent_workers or len(later) < 2:
        return None
    first_s = median(epoch.first_batch_s or 0.0 for epoch in later)
    epoch_s = median(epoch.wall_s for epoch in later)
    if first_s < max(_LEAST_DRAIN_S, _LEAST_DRAIN_SHARE * epoch_s):
        return None
    return {"first_s": first_s, "epoch_s": epoch_s, "share": first_s / epoch_s}


@case("slower-each-epoch")
def slower_each_epoch(facts: Facts) -> Figures | None:
    """Epochs become slower and slower.

    Reported when, of seven epochs or more, the last third delivers 10 % fewer batches per second
    than the first third. The decline must be steady, and the first epoch is left out.

    Fix: look for what grows: lists in the data set, or the index of a cache. A cache of downloaded
    data may be full, and evict what the next epoch needs.
    """
    whole = [each for each in facts.recording.epochs if each.closing_s is not None]
    rates = [_rate(each) for each in whole if each.index]
    if len(rates) < _LEAST_EPOCHS:
        return None
    third = len(rates) // 3
    first, last = fmean(rates[:third]), fmean(rates[-third:])
    pairs = list(combinations(rates, 2))
    concordance = sum((later < earlier) - (later > earlier) for earlier, later in pairs)
    if last > first * (1 - _LEAST_SLOWER) or concordance < _LEAST_CONCORDANCE * len(pairs):
        return None
    return {"slower": 1 - last / first, "first": first, "last": last, "epochs": len(rates) + 1}


def _rate(epoch: Epoch) -> float:
    return epoch.batches / epoch.wall_s


@case("full-cache")
def evicting_cache(facts: Facts) -> Figures | None:
    """A cache of downloaded data is full and evicts, so that later epochs download again.

    Reported where the accelerator is starved, and an epoch began without all data in the cache
    although one before it was complete. The cache must be limited, by `cache_limit` of MosaicML
    Streaming or `max_cache_size` of LitData, to less than it needs to hold all data of the node.

    Fix: let the cache be large enough, or keep the data nearer or smaller.
    """
    cache, earlier = facts.recording.limited_cache, facts.recording.epochs[:-1]
    if cache is None or cache.limit_bytes >= cache.needed_bytes or not facts.starved:
        return None
    missing = cache.data_bytes - cache.held_bytes
    if missing <= 0 or not any(epoch.closing_s is not None for epoch in earlier):
        return None
    return {"cache": cache, "missing": missing}
