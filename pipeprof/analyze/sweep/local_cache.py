"""Compute what a cache on a local disk is worth: its gain, its break-even, and its least size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeprof.analyze.compare.ratios import Interval, difference, paired_ratio
from pipeprof.model import CachePass, LocalCache


@dataclass(frozen=True)
class CacheRound:
    """The same batches read without a cache, while one is filled, and from the filled one."""

    uncached: CachePass
    filling: CachePass
    cached: CachePass


def evaluate_cache(
    rounds: Sequence[CacheRound],
    threshold: float,
    *,
    folder: str,
    limit_bytes: int | None,
    splits: int,
    cached_bytes: int,
    dataset_bytes: int,
) -> LocalCache:
    """Return the worth of a cache by two or more rounds.

    Args:
        rounds: What was measured.
        threshold: The starved fraction from which an accelerator counts as starved.
        folder: See `LocalCache`, like the arguments that follow.
        limit_bytes: See `LocalCache`.
        splits: See `LocalCache`.
        cached_bytes: See `LocalCache`.
        dataset_bytes: See `LocalCache`.
    """
    uncached, filling, cached = (
        _mean([getattr(each, name) for each in rounds])
        for name in ("uncached", "filling", "cached")
    )
    gain, gain_interval = _ratio([(one.cached, one.uncached) for one in rounds])
    cost, cost_interval = _ratio([(one.filling, one.uncached) for one in rounds])
    soonest = break_even(cost_interval[1], gain_interval[1])
    latest = break_even(cost_interval[0], gain_interval[0])
    share = 1.0
    if limit_bytes is not None and dataset_bytes:
        share = min(1.0, limit_bytes / dataset_bytes)
    return LocalCache(
        folder=folder,
        limit_bytes=limit_bytes,
        uncached=uncached,
        filling=filling,
        cached=cached,
        splits=splits,
        rounds=len(rounds),
        cached_bytes=cached_bytes,
        dataset_bytes=dataset_bytes,
        gain=gain,
        gain_interval=gain_interval,
        difference=difference(gain, gain_interval),
        break_even=break_even(cost, gain),
        break_even_interval=(soonest, latest),
        share=share,
        limited=with_share(uncached, cached, share),
        evicting_hits=evicting_hits(share),
        least_share=least_share(uncached, cached, threshold),
    )


def break_even(filling: float, cached: float) -> float | None:
    """Return after how many epochs a cache has paid for its filling; ``None``: never.

    ``filling`` and ``cached`` are the rates of the first epoch and of later ones, as multiples of
    the rate without a cache. The epoch of that rate is the unit of time: n epochs take
    1/filling + (n - 1)/cached with the cache, and n without it.
    """
    saved = 1 - 1 / cached
    if saved <= 0:
        return None
    return max(1.0, (1 / filling - 1 / cached) / saved)


def with_share(uncached: CachePass, cached: CachePass, share: float) -> CachePass:
    """Return an epoch of which ``share`` is in the cache, one part of it after the other. Mixed
    batches, as of a shuffled order, wait less."""
    fast, slow = share / cached.samples_per_s, (1 - share) / uncached.samples_per_s
    seconds = fast + slow
    waited = fast * cached.starved_fraction + slow * uncached.starved_fraction
    return CachePass(1 / seconds, waited / seconds)


def least_share(uncached: CachePass, cached: CachePass, threshold: float) -> float | None:
    """Return the least share of a data set that must be cached for a starved fraction of at most
    ``threshold``; ``None`` if all of it is not enough."""
    if uncached.starved_fraction <= threshold:
        return 0.0
    if cached.starved_fraction > threshold:
        return None
    # how far each part of a sample's time is above the threshold: the shares balance these
    above = (uncached.starved_fraction - threshold) / uncached.samples_per_s
    below = (threshold - cached.starved_fraction) / cached.samples_per_s
    return above / (above + below)


def evicting_hits(share: float) -> float:
    """Return the share of hits of a cache that evicts what was used the longest ago.

    It holds ``share`` of the data, and each epoch reads all of these in a new random order. An item
    at the place a of one epoch and b of the next is still there if the others read between are
    fewer than the cache holds: 1 - a + ab < share. Over random a and b this is
    share + (1 - share) ln(1 - share). In an order that repeats there is no hit below 1.
    """
    return 1.0 if share >= 1 else share + (1 - share) * math.log1p(-share)


def _mean(passes: Sequence[CachePass]) -> CachePass:
    """Return the pass of all rounds: each delivered the same samples."""
    seconds = [1 / each.samples_per_s for each in passes]
    waited = sum(time * each.starved_fraction for time, each in zip(seconds, passes, strict=True))
    return CachePass(len(passes) / sum(seconds), waited / sum(seconds))


def _ratio(pairs: Sequence[tuple[CachePass, CachePass]]) -> tuple[float, Interval]:
    return paired_ratio([(one.samples_per_s, other.samples_per_s) for one, other in pairs])
